package storage

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve"
)

// NewDatastoreCommand returns the commands for records and blobs.
func NewDatastoreCommand(a *cli.App) *cobra.Command {
	c := cli.NewGroup("datastore", "Move or check the records and blobs of a server", newCopyCommand(a), newCheckCommand(a))
	c.Long = `Work on the records and blobs of a server, on its machine and as its user, with its
holdfast.yaml. Nothing is asked of the server.`
	return c
}

func addConfigFlag(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "config", "c", "holdfast.yaml", "configuration file of the server")
}

func load(path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, serve.ConfigError(path, err)
	}
	return cfg, nil
}

// progressEvery is how often a long command says how far it is.
const progressEvery = 5 * time.Second

// progress returns what prints now and then how far something is. It says nothing of what is
// done soon.
func progress(out io.Writer, now func() time.Time) func(doing string, done, total int64) {
	var mu sync.Mutex
	said := now()
	return func(doing string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if now().Sub(said) < progressEvery {
			return
		}
		said = now()
		if total > 0 {
			fmt.Fprintf(out, "%s: %d of %d\n", doing, done, total)
		} else {
			fmt.Fprintf(out, "%s: %d\n", doing, done)
		}
	}
}

// bytes are for people.
func bytes(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
