//go:build linux

// Command kubelet stands in for a kubelet and a scheduler in tests: it runs the containers
// of Pods as processes of this machine, and says of them to a real API server what a
// kubelet would. It needs no privilege. A container has its own mounts and processes, and
// the user that its Pod asks for; of images it knows those that it was given, as folders of
// programs. Stopped by SIGSTOP it is a node that has gone silent: its containers run on.
//
// What it cannot do it refuses: more than one container, probes, sidecars, images that it
// does not know. Annotations of a Pod make it fail:
//
//	standin/evict: MESSAGE   it is evicted, once it runs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/holdfast-dev/holdfast/internal/testenv/container"
)

// options are how the stand-in is started.
type options struct {
	server, caFile, tokenFile string
	node, dir                 string
	images                    map[string]string // name to a folder of programs
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == container.StageCommand {
		fmt.Fprintln(os.Stderr, "kubelet: stage:", container.Stage()) // it returns only if it fails
		os.Exit(128)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing to undo
	}
}

func run(ctx context.Context) error {
	o := options{images: map[string]string{}}
	flag.StringVar(&o.server, "server", "", "URL of the API server")
	flag.StringVar(&o.caFile, "ca-file", "", "its certificate authority")
	flag.StringVar(&o.tokenFile, "token-file", "", "file with a token")
	flag.StringVar(&o.node, "node", "standin", "name of the node")
	flag.StringVar(&o.dir, "dir", "", "folder for volumes and logs")
	flag.Func("image", "NAME=FOLDER: an image, and the folder of its programs", func(text string) error {
		name, folder, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("want NAME=FOLDER")
		}
		o.images[name] = folder
		return nil
	})
	flag.Parse()
	token, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: o.server, BearerToken: strings.TrimSpace(string(token)), QPS: 500, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{CAFile: o.caFile},
	})
	if err != nil {
		return err
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	k := &kubelet{options: o, client: client, workers: map[string]*worker{}, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	port, serve, err := k.listen()
	if err != nil {
		return err
	}
	if err := k.register(ctx, port); err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serve(ctx) })
	g.Go(func() error { return k.stayReady(ctx) })
	g.Go(func() error { return k.watch(ctx) })
	return g.Wait()
}
