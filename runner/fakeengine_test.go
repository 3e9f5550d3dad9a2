package runner_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// fakeEngine behaves as an engine does, or as the file "fake" in the root
// module says for a command: lines of "<command> <behaviour>". It appends each
// command to the file that FAKE_ENGINE_CALLS names.
func fakeEngine(args []string) int {
	command := args[0]
	if calls := os.Getenv("FAKE_ENGINE_CALLS"); calls != "" {
		note(calls, strings.Join(args, " "))
	}
	if command == "version" {
		note(os.Args[0]+".asked", "version")
		v := filepath.Base(filepath.Dir(os.Args[0]))
		if !strings.Contains(v, ".") {
			v = "1.9.9"
		}
		fmt.Printf(`{"terraform_version": %q, "platform": "linux_amd64", "provider_selections": {}}`+"\n", v)
		return 0
	}
	for _, behaviour := range fakeBehaviours(command) {
		if code, done := fakeBehave(behaviour); done {
			return code
		}
	}
	switch command {
	case "init":
		for name, content := range map[string]string{
			".terraform/terraform.tfstate":    "{}",
			".terraform/modules/modules.json": `{"Modules":[{"Key":"","Source":"","Dir":"."}]}`,
			".terraform.lock.hcl":             "# lock file\n",
		} {
			_ = os.MkdirAll(filepath.Dir(name), 0o700)
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, "Error:", err)
				return 1
			}
		}
	case "plan":
		for _, arg := range args {
			if out, ok := strings.CutPrefix(arg, "-out="); ok {
				_ = os.WriteFile(out, []byte("a plan"), 0o600)
			}
		}
		fmt.Println("Plan: 1 to add, 0 to change, 0 to destroy.")
		return 2
	case "show":
		fmt.Println(`{"format_version":"1.2","terraform_version":"1.9.9","resource_changes":[{"address":"terraform_data.x","mode":"managed","type":"terraform_data","name":"x","provider_name":"terraform.io/builtin/terraform","change":{"actions":["create"],"before":null,"after":{"input":"v"},"after_unknown":{"id":true},"before_sensitive":false,"after_sensitive":{}}}]}`)
	case "output":
		fmt.Println("{}")
	}
	return 0
}

// note appends a line to a file.
func note(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, line)
		f.Close()
	}
}

// fakeBehaviours reads what the command shall do.
func fakeBehaviours(command string) []string {
	f, err := os.Open("fake")
	if err != nil {
		return nil
	}
	defer f.Close()
	var found []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, behaviour, _ := strings.Cut(lines.Text(), " "); name == command {
			found = append(found, behaviour)
		}
	}
	return found
}

func fakeBehave(behaviour string) (code int, done bool) {
	what, argument, _ := strings.Cut(behaviour, " ")
	switch what {
	case "say": // on stdout
		fmt.Println(argument)
	case "fail": // with an error on stderr
		fmt.Fprintf(os.Stderr, "\nError: %s\n\n", strings.ReplaceAll(argument, `\n`, "\n"))
		return 1, true
	case "ready": // tells the test that it is there
		_ = os.WriteFile(argument, nil, 0o600)
	case "hang": // until SIGINT
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		<-interrupted
		fmt.Println("Interrupt received.")
		return 1, true
	case "hang-hard": // until SIGKILL
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	case "flood": // megabytes of lines
		fakeFlood(argument, append(bytes.Repeat([]byte("x"), 1023), '\n'))
	case "flood-line": // megabytes in one line
		fakeFlood(argument, bytes.Repeat([]byte("y"), 1024))
	case "quit":
		return 0, true
	}
	return 0, false
}

func fakeFlood(megabytes string, kilobyte []byte) {
	var n int
	_, _ = fmt.Sscan(megabytes, &n)
	piece := bytes.Repeat(kilobyte, 1024)
	for range n {
		_, _ = os.Stdout.Write(piece)
		_, _ = os.Stderr.Write(piece)
	}
}
