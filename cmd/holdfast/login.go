package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
)

// roles are what a token may be for.
var roles = []string{"viewer", "operator", "approver", "admin"}

// loginTime is how long somebody may take to allow a login.
const loginTime = 10 * time.Minute

func newLoginCommand(a *app) *cobra.Command {
	var (
		settings  client.Settings
		wish      client.LoginWish
		noBrowser bool
	)
	c := &cobra.Command{
		Use:   "login",
		Short: "Log in through the browser",
		Long: `Log in through the browser: a page of the server asks you to confirm that this command
line gets a token. The token is stored in a private file next to the client file. If
this machine has no browser, use --no-browser: the command shows a code, which you type
on a page of the server in any browser.`,
		Args: cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cli.OneOf("role", wish.Role, roles); err != nil {
				return err
			}
			settings.Getenv, settings.UserAgent = a.Getenv, "holdfast/"+a.Version
			host, _ := os.Hostname()
			wish.Name = strings.TrimSpace("holdfast on " + host)
			login, err := client.NewLogin(settings, wish)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), loginTime, errors.New("nobody has allowed the login within ten minutes"))
			defer cancel()
			granted, err := a.login(ctx, login, noBrowser)
			if err != nil {
				return fmt.Errorf("log in: %w", err)
			}
			file, err := client.SaveLogin(settings, login.Server(), granted.Token)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "logged in to %s as %s until %s; the token is in %s\n", login.Server(), granted.Name, granted.ExpiresAt.Format(time.DateOnly), file)
			return nil
		},
	}
	c.Flags().StringVar(&settings.Server, "server", "", "address of the server's API (default HOLDFAST_SERVER, then the client file)")
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "show a code to type in a browser elsewhere")
	c.Flags().StringVar(&wish.Role, "role", "admin", "the strongest role of the token; yours may be weaker: "+strings.Join(roles, ", "))
	c.Flags().StringArrayVar(&wish.Projects, "project", nil, "limit the token to this project; may be repeated")
	c.Flags().DurationVar(&wish.Lifetime, "lifetime", 30*24*time.Hour, "how long the token lasts")
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// login gets a token by a browser on this machine, or by a code.
func (a *app) login(ctx context.Context, login *client.Login, noBrowser bool) (client.Granted, error) {
	if noBrowser {
		code, err := login.Begin(ctx)
		if err != nil {
			return client.Granted{}, err
		}
		fmt.Fprintf(a.Err, "Open %s in a browser, and type the code %s\n", code.Page, code.Code)
		return login.Wait(ctx, code)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return client.Granted{}, hint.New(err, "give --no-browser")
	}
	back := &callback{state: rand.Text(), done: make(chan struct{})}
	server := &http.Server{Handler: back, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	page := login.Page("http://"+listener.Addr().String()+"/callback", back.state)
	fmt.Fprintf(a.Err, "Allow it in your browser: %s\n", page)
	if err := a.openBrowser(ctx, page); err != nil {
		fmt.Fprintf(a.Err, "The browser was not opened (%v): open the address yourself, on this machine, or give --no-browser\n", err)
	}
	select {
	case <-ctx.Done():
		return client.Granted{}, context.Cause(ctx)
	case <-back.done:
	}
	if back.denied != "" {
		return client.Granted{}, fmt.Errorf("it was denied: %s", back.denied)
	}
	return login.Exchange(ctx, back.code)
}

// callback is where the browser leads back to.
type callback struct {
	state        string
	once         sync.Once
	code, denied string // set before done is closed
	done         chan struct{}
}

// ServeHTTP takes the first answer that has the state, which nobody else knows.
func (b *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path != "/callback" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(b.state)) != 1 {
		http.Error(w, "This is not the answer to a login.", http.StatusBadRequest)
		return
	}
	b.once.Do(func() {
		b.code, b.denied = query.Get("code"), query.Get("error")
		close(b.done)
	})
	fmt.Fprintln(w, "The command line continues. You can close this page.")
}

// openBrowser opens a page with what BROWSER names, or the system's own.
func (a *app) openBrowser(ctx context.Context, page string) error {
	name, args := a.Getenv("BROWSER"), []string{page}
	if name == "" {
		switch runtime.GOOS {
		case "darwin":
			name = "open"
		case "windows":
			name, args = "rundll32", []string{"url.dll,FileProtocolHandler", page}
		default:
			name = "xdg-open"
		}
	}
	browser := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if err := browser.Start(); err != nil {
		return err
	}
	go func() { _ = browser.Wait() }()
	return nil
}

func newLogoutCommand(a *app) *cobra.Command {
	var conn cli.Connection
	c := &cobra.Command{
		Use:   "logout",
		Short: "Delete the token of the last login, here and on the server",
		Args:  cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Connect(conn)
			if err == nil {
				err = deleteOwn(c.Context(), cl)
			}
			forgotten := client.ForgetLogin(client.Settings{Getenv: a.Getenv})
			if errors.Is(forgotten, fs.ErrNotExist) {
				return hint.New(errors.New("nobody has logged in here"), "a token of HOLDFAST_TOKEN or of a file is not touched")
			}
			if err := errors.Join(err, forgotten); err != nil {
				return fmt.Errorf("log out: %w", err)
			}
			fmt.Fprintln(a.Out, "logged out")
			return nil
		},
	}
	cli.AddConnectionFlags(c, &conn)
	return c
}

// deleteOwn deletes the token with which the server is called, if somebody has made it.
func deleteOwn(ctx context.Context, cl *client.Client) error {
	who, err := cl.Caller(ctx)
	if answered := new(client.Error); errors.As(err, &answered) && answered.Status == http.StatusUnauthorized {
		return nil // it is over
	}
	if err != nil || who.Via != "personal" {
		return err
	}
	return client.TokensOf(cl).Delete(ctx, who.ID, false)
}

func newWhoamiCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
	)
	c := &cobra.Command{
		Use:   "whoami",
		Short: "Show who you are to the server, and your roles",
		Args:  cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			who, err := cl.Caller(c.Context())
			if err != nil {
				return err
			}
			return a.Print(format, who, func() string { return callerText(who) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	return c
}

func callerText(who v1.Caller) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, by %s %s\n", who.Name, map[string]string{"token": "token", "personal": "personal token", "session": "session"}[who.Via], who.ID)
	for _, grant := range who.Roles {
		project := "project " + grant.Project
		if grant.Project == "*" {
			project = "all projects"
		}
		fmt.Fprintf(&b, "%s in %s\n", grant.Role, project)
	}
	return b.String()
}
