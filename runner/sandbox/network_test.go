//go:build linux

package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeusers"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// The addresses of the machine beyond the link.
var remote = []string{"203.0.113.10:443", "169.254.169.254:80", "169.254.170.2:80", "100.100.100.200:80", "168.63.129.16:80", "[2001:db8::10]:443", "[fd00:ec2::254]:80"}

// held are addresses that the rules keep from engines, free those that they do not.
var (
	held = append([]string{
		"127.0.0.1:6379", "127.0.0.2:6379", "[::1]:6379", "[::ffff:127.0.0.1]:6379", "0.0.0.0:6379", "[::]:6379",
		"203.0.113.1:6379", "[2001:db8::1]:6379", // the machine's own addresses
	}, remote[1], remote[2], remote[3], remote[4], remote[6])
	free = []string{remote[0], remote[5], "127.0.0.53:53"}
)

// networkUsers is how many users tests in their own network have.
const networkUsers = 100

// TestNetworkRules loads the rules that we ship, in its own network, and has engines
// connect to what they must not reach and to what they may.
func TestNetworkRules(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: only root loads rules")
		return
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	rules, err := filepath.Abs("../../deploy/nftables/holdfast.nft")
	if err != nil {
		t.Fatal(err)
	}
	// Users of slots as the rules have them, far from the first ones, which a server on
	// this machine may use, and one that they do not have.
	plan, apply, stranger := freeusers.Within(t, 60650, 60699), freeusers.Within(t, 60950, 60999), freeusers.Within(t, 60700, 60899)
	rerun(t, "TestInNetwork", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, "SANDBOX_TEST_RULES="+rules,
		fmt.Sprint("SANDBOX_TEST_USERS=", freeusers.Of(t, networkUsers)),
		fmt.Sprintf("SANDBOX_TEST_RULED=%d %d %d", plan, apply, stranger))
}

// rerun runs one test of this program in its own process.
func rerun(t *testing.T, test string, attr *syscall.SysProcAttr, env ...string) {
	t.Helper()
	program := program(t)
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^"+test+"$", "-test.timeout=5m")
	cmd.Dir = "/"
	cmd.Env = append(append(os.Environ(), "SANDBOX_TEST_PROGRAM="+program, "HOME=/", "TMPDIR=/tmp"), env...)
	cmd.SysProcAttr = attr
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("%s %v: %v\n%s", test, env, err, out)
	}
}

// TestInNetwork is TestNetworkRules inside of the network.
func TestInNetwork(t *testing.T) {
	rules := os.Getenv("SANDBOX_TEST_RULES")
	if rules == "" {
		t.Log("part of TestNetworkRules")
		return
	}
	connectNetworks(t)
	for _, at := range []string{"0.0.0.0:6379", "[::]:6379", "127.0.0.53:53"} {
		listen(t, at)
	}
	proxy := listen(t, "127.0.0.1:0") // as an agent listens for its engines
	everything := append(slices.Concat(held, free), proxy)

	users, ruled := number(os.Getenv("SANDBOX_TEST_USERS")), strings.Fields(os.Getenv("SANDBOX_TEST_RULED"))
	planUser, applyUser, strangeUser := number(ruled[0]), number(ruled[1]), number(ruled[2])
	everyMode := func(t *testing.T, user int, reached, kept []string) {
		for _, mode := range []sandbox.Mode{sandbox.ModeSlots, sandbox.ModeRange, sandbox.ModeUsers} {
			attr := &syscall.SysProcAttr{}
			if mode == sandbox.ModeRange {
				attr = rangeAttributes(users, users+1, networkUsers-1)
				own := syscall.SysProcIDMap{ContainerID: 60600, HostID: 60600, Size: 400}
				attr.UidMappings, attr.GidMappings = append(attr.UidMappings, own), append(attr.GidMappings, own)
			}
			rerun(t, "TestReach", attr, "SANDBOX_TEST_AS="+string(mode), "SANDBOX_TEST_REACH="+string(mode),
				fmt.Sprint("SANDBOX_TEST_USERS=", users+1), fmt.Sprint("SANDBOX_TEST_USER=", user),
				"SANDBOX_TEST_REACHED="+strings.Join(reached, " "), "SANDBOX_TEST_KEPT="+strings.Join(kept, " "))
		}
	}
	t.Run("without rules", func(t *testing.T) { everyMode(t, planUser, everything, nil) })

	for range 2 { // loading them again changes nothing
		command(t, "nft", "-f", rules)
	}
	t.Run("plans", func(t *testing.T) { everyMode(t, planUser, append(free, proxy), held) })
	t.Run("applies", func(t *testing.T) { everyMode(t, applyUser, append(free, proxy), held) })
	t.Run("other users", func(t *testing.T) { everyMode(t, strangeUser, everything, nil) })
	for _, address := range everything {
		conn, err := dial(address)
		if err != nil {
			t.Errorf("the agent does not reach %s: %v", address, err)
			continue
		}
		conn.Close()
	}
}

// TestReach starts an engine of a user that connects to addresses.
func TestReach(t *testing.T) {
	mode := os.Getenv("SANDBOX_TEST_REACH")
	if mode == "" {
		t.Log("part of TestNetworkRules")
		return
	}
	l := newLab(t, sandbox.Mode(mode))
	id := number(os.Getenv("SANDBOX_TEST_USER"))
	l.slot = sandbox.Slot{UID: id, GID: id}
	if err := l.Give(t.Context(), l.dir, l.slot); err != nil {
		t.Fatal(err)
	}
	reached := strings.Fields(os.Getenv("SANDBOX_TEST_REACHED"))
	addresses := append(reached, strings.Fields(os.Getenv("SANDBOX_TEST_KEPT"))...)
	exit, said := l.run(t, l.command("connect", addresses...))
	answers := strings.Split(strings.TrimSpace(said), "\n")
	if exit.Code != 0 || len(answers) != len(addresses) {
		t.Fatalf("%+v: %s", exit, said)
	}
	for i, answer := range answers {
		if want := i < len(reached); (answer == "hello") != want {
			t.Errorf("user %d in mode %s connects to %s: %s, want it to: %t", id, mode, addresses[i], answer, want)
		}
	}
}

// connectNetworks gives this network a link, with a machine at its other end.
func connectNetworks(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), remote...)
	cmd.Env = append(os.Environ(), engineVerb+"=machine")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

	command(t, "ip", "link", "set", "lo", "up")
	command(t, "ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", fmt.Sprint(cmd.Process.Pid))
	command(t, "ip", "addr", "add", "203.0.113.1/24", "dev", "near")
	command(t, "ip", "addr", "add", "2001:db8::1/64", "dev", "near", "nodad")
	command(t, "ip", "link", "set", "near", "up")
	for _, address := range remote {
		if host, _, _ := net.SplitHostPort(address); !strings.HasPrefix(host, "2") { // not of the link's networks
			command(t, "ip", "route", "add", host, "dev", "near")
		}
	}
	if _, err := in.Write([]byte("linked\n")); err != nil {
		t.Fatal(err)
	}
	ready(t, out)
}

// machine is another machine, at the far end of a link, that listens at addresses.
func machine(addresses []string) int {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // linked
	run := func(args ...string) {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			panic(string(out))
		}
	}
	run("link", "set", "lo", "up")
	run("link", "set", "far", "up")
	for _, address := range addresses {
		host, _, _ := net.SplitHostPort(address)
		switch {
		case strings.Contains(host, ":"):
			run("addr", "add", host+"/64", "dev", "far", "nodad")
		case strings.HasPrefix(host, "203."):
			run("addr", "add", host+"/24", "dev", "far")
		default:
			run("addr", "add", host+"/32", "dev", "far")
		}
	}
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			panic(err)
		}
		go accept(l)
	}
	say("ready")
	return forever()
}

func listen(t *testing.T, at string) (address string) {
	t.Helper()
	network := "tcp6"
	if strings.Count(at, ":") == 1 {
		network = "tcp4"
	}
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go accept(l)
	return l.Addr().String()
}

func accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "hello")
		conn.Close()
	}
}

func dial(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, time.Minute) }

// connect is an engine that says what it hears from addresses, one a line.
func connect(addresses []string) int {
	for _, address := range addresses {
		heard := make([]byte, len("hello"))
		conn, err := dial(address)
		if err == nil {
			_, err = io.ReadFull(conn, heard)
		}
		if err != nil {
			heard = []byte(strings.ReplaceAll(err.Error(), "\n", " "))
		}
		say(string(heard))
	}
	return 0
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
