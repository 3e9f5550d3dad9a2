package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

// A program that lists what waits, and then follows the runs of the fleet.
func Example() {
	ctx := context.Background()
	c, err := client.Connect(client.Settings{ // HOLDFAST_SERVER and HOLDFAST_TOKEN, or the client file
		UserAgent: "example/1.0", Warnings: os.Stderr,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	clusters, err := c.Summaries(ctx, url.Values{"project": {"payments"}, "waiting": {"*"}})
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Problem.Detail, refused.Problem.Reason)
		return
	} else if err != nil {
		fmt.Println(err)
		return
	}
	for _, cluster := range clusters {
		fmt.Println(cluster.Name, "waits:", cluster.Waiting)
	}
	kinds := []holdfast.ChangeKind{holdfast.ChangeRun}
	err = c.Events(ctx, client.EventsOptions{Kinds: kinds}, func(event client.Event) error {
		if event.Type != string(holdfast.ChangeRun) { // ready, or read everything again
			return nil
		}
		run, err := c.Run(ctx, event.Name)
		if err == nil {
			fmt.Println(run.ID, run.Status)
		}
		return err
	})
	fmt.Println(err)
}
