// Peer drains a receiver with go-amqp, or asks for a selector: peer URL ADDRESS [SELECTOR].
//
// With a selector it attaches a receiver with that as its filter, and prints the error condition
// that it is told, or "attached". Without one it drains without credit, with credit that nobody uses, and after its credit has been used up, and
// prints a line after each. Where a drain gets no answer it says so, and ends with status 1.
//
// As peer xoauth2 URL USER TOKEN it logs in by XOAUTH2, and prints "opened" or the error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/Azure/go-amqp"
)

const patience = 20 * time.Second

// Tokens need larger SASL frames than the specification allows.
const longestInit = 16384

func main() {
	if len(os.Args) == 5 && os.Args[1] == "xoauth2" {
		fmt.Println(logIn(os.Args[2], os.Args[3], os.Args[4]))
		return
	}
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: peer URL ADDRESS [SELECTOR]")
		os.Exit(2)
	}
	selector := ""
	if len(os.Args) == 4 {
		selector = os.Args[3]
	}
	if err := run(os.Args[1], os.Args[2], selector); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// logIn opens a connection with a token, and returns what became of it.
func logIn(url, user, token string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	options := &amqp.ConnOptions{SASLType: amqp.SASLTypeXOAUTH2(user, token, longestInit)}
	connection, err := amqp.Dial(ctx, url, options)
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	if _, err = connection.NewSession(ctx, nil); err != nil {
		return err.Error()
	}
	return "opened"
}

func run(url, address, selector string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	connection, err := amqp.Dial(ctx, url, nil)
	if err != nil {
		return err
	}
	defer connection.Close()
	session, err := connection.NewSession(ctx, nil)
	if err != nil {
		return err
	}
	if selector != "" {
		return selectMessages(ctx, session, address, selector)
	}
	receiver, err := session.NewReceiver(ctx, address, &amqp.ReceiverOptions{Credit: -1})
	if err != nil {
		return err
	}
	if err := drain(ctx, receiver, "without credit"); err != nil {
		return err
	}
	if err := drain(ctx, receiver, "without credit again"); err != nil {
		return err
	}
	if err := receiver.IssueCredit(5); err != nil {
		return err
	}
	if err := drain(ctx, receiver, "credit that nobody uses"); err != nil {
		return err
	}
	if err := exchange(ctx, session, receiver, address); err != nil {
		return err
	}
	return drain(ctx, receiver, "credit that is used up")
}

// selectMessages attaches with a filter. The library hears of a refusal when it receives, at the latest.
func selectMessages(ctx context.Context, session *amqp.Session, address, selector string) error {
	filters := []amqp.LinkFilter{amqp.NewSelectorFilter(selector)}
	receiver, err := session.NewReceiver(ctx, address, &amqp.ReceiverOptions{Filters: filters})
	if err == nil {
		brief, cancel := context.WithTimeout(ctx, patience/2)
		defer cancel()
		_, err = receiver.Receive(brief, nil)
	}
	var refused *amqp.LinkError
	if errors.As(err, &refused) && refused.RemoteErr != nil {
		fmt.Println("refused:", refused.RemoteErr.Condition)
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		fmt.Println("attached")
		return nil
	}
	return err
}

func drain(ctx context.Context, receiver *amqp.Receiver, what string) error {
	if err := receiver.DrainCredit(ctx, nil); err != nil {
		return fmt.Errorf("drain, %s: %w", what, err)
	}
	fmt.Println("drained:", what)
	return nil
}

// exchange sends a message to the receiver, with as much credit as that takes.
func exchange(ctx context.Context, session *amqp.Session, receiver *amqp.Receiver, address string) error {
	if err := receiver.IssueCredit(1); err != nil {
		return err
	}
	sender, err := session.NewSender(ctx, address, nil)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- sender.Send(ctx, amqp.NewMessage([]byte("hello")), nil) }()
	message, err := receiver.Receive(ctx, nil)
	if err != nil {
		return err
	}
	if err := receiver.AcceptMessage(ctx, message); err != nil {
		return err
	}
	if err := <-failed; err != nil {
		return err
	}
	fmt.Printf("received: %s\n", message.GetData())
	return nil
}
