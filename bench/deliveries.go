package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

const (
	fleetSize   = 10 // clusters of the server that is looked at
	connections = 8
	loadFor     = 4 * time.Second
	bodySize    = 8 << 10
	settleFor   = 5 * time.Second // before memory is read
)

// deliveries measures a server with a small fleet: its start, its memory when
// it has nothing to do, and how fast it accepts deliveries.
func (b *bench) deliveries(s *stage) {
	w := s.newWorld("")
	files := make(map[string]string)
	for i := range fleetSize {
		name := fmt.Sprintf("fleet-%d", i)
		files["infra/"+name+"/main.tf"] = plainModule.code
		files["clusters/"+name+".yaml"] = clusterFile(name)
	}
	w.git.Commit("main", "A fleet", files)
	first := w.start()
	w.until("the fleet is planned", func() bool {
		return strings.Count(w.log.String(), `msg="attempt has ended"`) >= fleetSize
	})
	w.stop()
	var starts []time.Duration
	for range b.repeat {
		starts = append(starts, w.start())
		if len(starts) < b.repeat {
			w.stop()
		}
	}
	// A pull request and its end: a server that has worked, and is idle now.
	w.pullRequest(plainModule, fleetSize, "first")
	time.Sleep(settleFor)
	idle := w.memory()
	fmt.Fprintf(b.log, "ready after %s, again after %s; idle: %+v MiB\n", ms(first), ms(median(starts)), idle)

	body := w.pushBody()
	var rates []float64
	var p50, p99 []time.Duration
	var floorRates []float64
	var floor50, floor99 []time.Duration
	for range s.rounds() {
		bare, stop := s.startBare()
		l := s.load(bare, body)
		stop()
		floorRates, floor50, floor99 = append(floorRates, l.rate), append(floor50, l.p50), append(floor99, l.p99)
		l = s.load(w.hook, body)
		rates, p50, p99 = append(rates, l.rate), append(p50, l.p50), append(p99, l.p99)
		fmt.Fprintf(b.log, "deliveries: %.0f/s, p50 %s, p99 %s\n", l.rate, l.p50, l.p99)
	}
	inMS := func(d []time.Duration) float64 { return float64(median(d).Microseconds()) / 1000 }
	s.add(
		figure{Name: "webhook deliveries accepted", N: connections, Value: median(rates), Unit: "1/s"}.against(median(floorRates)),
		figure{Name: "webhook delivery, p50", N: connections, Value: inMS(p50), Unit: "ms"}.against(inMS(floor50)),
		figure{Name: "webhook delivery, p99", N: connections, Value: inMS(p99), Unit: "ms"}.against(inMS(floor99)),
		figure{Name: "idle memory of server and agents, resident", N: fleetSize, Value: idle.rss, Unit: "MiB"},
		figure{Name: "idle memory of server and agents, proportional", N: fleetSize, Value: idle.pss, Unit: "MiB"},
		figure{Name: "first start to ready", N: fleetSize, Value: first.Seconds(), Unit: "s"},
		figure{Name: "start to ready", N: fleetSize, Value: median(starts).Seconds(), Unit: "s"},
	)
}

// footprint is what a server and its agents hold, in MiB.
type footprint struct{ rss, pss float64 }

func (w *world) memory() footprint {
	pids := append(w.agents(), w.cmd.Process.Pid)
	var sum footprint
	for _, pid := range pids {
		rss, pss := w.resident(pid)
		sum.rss, sum.pss = sum.rss+rss, sum.pss+pss
	}
	return sum
}

func (s *stage) resident(pid int) (rss, pss float64) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	s.check(err)
	for line := range strings.Lines(string(data)) {
		var kb float64
		key, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscan(rest, &kb); err != nil {
			continue
		}
		switch key {
		case "Rss":
			rss = kb / 1024
		case "Pss":
			pss = kb / 1024
		}
	}
	return rss, pss
}

// pushBody is a recorded push of the tracked branch, filled up to its size.
func (w *world) pushBody() []byte {
	w.hub.SetWebhook("http://127.0.0.1:1/", webhookSecret) // only its body is wanted
	sha := w.git.Rev("main")
	w.hub.Push("refs/heads/main", sha, sha)
	sent := w.hub.Deliveries()
	var payload map[string]any
	w.check(json.Unmarshal(sent[len(sent)-1].Body, &payload))
	head := payload["head_commit"].(map[string]any)
	delete(payload, "head_commit")
	for size := 0; size < bodySize; {
		commits, _ := payload["commits"].([]any)
		payload["commits"] = append(commits, head)
		body, err := json.Marshal(payload)
		w.check(err)
		size = len(body)
	}
	body, err := json.Marshal(payload)
	w.check(err)
	return body
}

// bareArg makes this program the server that load is compared with: it reads a
// body, checks its signature, and answers.
const bareArg = "serve-bare"

func serveBare() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	server := http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(webhookSecret))
		mac.Write(body)
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); err != nil || r.Header.Get("X-Hub-Signature-256") != want {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusOK)
	})}
	fmt.Fprintln(os.Stderr, "bench:", server.Serve(listener))
	os.Exit(1)
}

func (s *stage) startBare() (url string, stop func()) {
	self, err := os.Executable()
	s.check(err)
	cmd := exec.Command(self, bareArg)
	out, err := cmd.StdoutPipe()
	s.check(err)
	s.check(cmd.Start())
	line := make([]byte, 64)
	n, err := out.Read(line)
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err != nil {
		stop()
		s.check(err)
	}
	return "http://" + strings.TrimSpace(string(line[:n])) + "/", stop
}

// loaded is how a server answered to the generator.
type loaded struct {
	rate     float64 // a second
	p50, p99 time.Duration
}

// load posts signed deliveries over several connections, each as soon as the one before
// was answered, and each with its own id.
func (s *stage) load(url string, body []byte) loaded {
	headers := githubserver.Headers(githubserver.Delivery{Event: "push", Body: body}, webhookSecret)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}, Timeout: patience}
	defer client.CloseIdleConnections()
	took := make([][]time.Duration, connections)
	errs := make([]error, connections)
	began := time.Now()
	var senders sync.WaitGroup
	for i := range connections {
		senders.Go(func() {
			for n := 0; time.Since(began) < loadFor && errs[i] == nil; n++ {
				var d time.Duration
				d, errs[i] = deliver(client, url, body, headers, fmt.Sprintf("%s-%d-%d", holdfast.NewID("load", began), i, n))
				took[i] = append(took[i], d)
			}
		})
	}
	senders.Wait()
	elapsed := time.Since(began)
	var all []time.Duration
	for i := range connections {
		s.check(errs[i])
		all = append(all, took[i]...)
	}
	slices.Sort(all)
	return loaded{
		rate: float64(len(all)) / elapsed.Seconds(),
		p50:  all[len(all)/2], p99: all[len(all)*99/100],
	}
}

func deliver(client *http.Client, url string, body []byte, headers http.Header, id string) (time.Duration, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = headers.Clone()
	req.Header.Set("X-GitHub-Delivery", id)
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("deliver: %w", err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	took := time.Since(began)
	if err := resp.Body.Close(); err != nil {
		return 0, fmt.Errorf("deliver: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("deliver: %s", resp.Status)
	}
	return took, err
}
