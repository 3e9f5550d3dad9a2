package e2e_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
)

// chaosLease is the lease of runs in TestChaos. An outage may be shorter or longer.
const chaosLease = 4 * time.Second

// monkey makes things fail at random points, always the same things for a seed.
type monkey struct {
	w     *world
	rng   *rand.Rand // what is done: of the rounds and of the faults
	luck  *rand.Rand // how the present fault is done, which depends on what it meets
	redis *redisserver.Server
	made  map[string]int // faults that did something, by name
	idle  int            // faults that met nothing

	store    *stateStore // with the state of gamma
	postgres postgres    // of epsilon
	bucket   *bucket     // of zeta

	edited    bool // somebody has edited the cloud, and alpha was not checked since
	smallDisk bool // the data folder has its own disk, which can be filled
}

// newMonkey takes its seed from HOLDFAST_E2E_SEED, or makes one and says it.
func newMonkey(w *world) *monkey {
	w.t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_E2E_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	w.t.Logf("HOLDFAST_E2E_SEED=%d makes the same choices again", seed)
	m := &monkey{
		w: w, redis: w.useRedis(), made: make(map[string]int),
		store: newStateStore(w), postgres: newPostgres(w), bucket: newBucket(w),
	}
	m.rng = rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // not a secret
	if os.Getuid() == 0 {
		w.mountSmallDisk(1 << 30)
		m.smallDisk = true
	}
	return m
}

// A fault begins, and is over when the function that it returns was called, which
// reports whether anything has noticed it.
type fault struct {
	name  string
	lasts bool // it lasts for a while: for longer than a lease, now and then
	begin func(m *monkey) (over func() bool)
}

var faults = []fault{ //nolint:gochecknoglobals // a constant table
	{"the server is killed", true, func(m *monkey) func() bool { m.w.crash(); return m.serverIsBack }},
	{"the server is told to end", true, func(m *monkey) func() bool { m.w.stop(); m.w.exited = nil; return m.serverIsBack }},
	{"the server hangs", true, func(m *monkey) func() bool { return m.stopped([]int{m.w.server.Process.Pid}) }},
	{"an agent is killed", false, func(m *monkey) func() bool { return m.killed(m.w.agentPIDs()) }},
	{"an agent is stopped", false, func(m *monkey) func() bool {
		pid := m.signal(m.w.agentPIDs(), syscall.SIGSTOP) // and never continues
		return func() bool { return pid != 0 }
	}},
	{"an agent hangs", true, func(m *monkey) func() bool { return m.stopped(m.w.agentPIDs()) }},
	{"an engine is killed", false, func(m *monkey) func() bool { return m.killed(m.atWork(anyEngine)) }},
	{"an engine is killed in an apply", false, (*monkey).killApply},
	{"an engine hangs", true, func(m *monkey) func() bool { return m.stopped(m.atWork(anyEngine)) }},
	{"server and agents are killed", true, func(m *monkey) func() bool {
		m.w.crash()
		for _, agent := range m.w.agentPIDs() {
			m.killed([]int{agent})
		}
		return m.serverIsBack
	}},
	{"Redis forgets", false, func(m *monkey) func() bool { m.redis.Restart(); return happened }},
	{"Redis hangs", true, func(m *monkey) func() bool { m.redis.Pause(); return then(m.redis.Resume) }},
	{"Redis is away", true, func(m *monkey) func() bool { m.redis.Stop(); return then(m.redis.Restart) }},
	{"the state store is away", true, func(m *monkey) func() bool {
		m.inWork() // whoever asks the store
		return noticed(m.store.missedCalls, m.store.fail(false))
	}},
	{"the state store hangs", true, func(m *monkey) func() bool {
		m.inWork()
		return noticed(m.store.missedCalls, m.store.fail(true))
	}},
	{"PostgreSQL is killed", true, func(m *monkey) func() bool { return m.whileConnected(m.postgres.Kill, m.postgres.Restart) }},
	{"PostgreSQL hangs", true, func(m *monkey) func() bool { return m.whileConnected(m.postgres.Pause, m.postgres.Resume) }},
	{"the object store is away", true, func(m *monkey) func() bool {
		m.inWork()
		return noticed(m.bucket.missedCalls, m.bucket.fail(false))
	}},
	{"the object store hangs", true, func(m *monkey) func() bool {
		m.inWork()
		return noticed(m.bucket.missedCalls, m.bucket.fail(true))
	}},
	{"the Git host fails", true, func(m *monkey) func() bool {
		m.w.git.Intercept(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "away", http.StatusBadGateway) })
		return noticed(m.fetches, func() { m.w.git.Intercept(nil) })
	}},
	{"the Git host hangs", true, func(m *monkey) func() bool {
		gate := make(chan struct{})
		m.w.git.Hold(gate)
		return noticed(m.fetches, func() { m.w.git.Hold(nil); close(gate) })
	}},
	{"the code host fails", true, func(m *monkey) func() bool {
		lost := githubserver.BadGateway
		lost.After = true
		return m.codeHostAnswers(githubserver.BadGateway, lost, githubserver.HTML, githubserver.Garbage, githubserver.SecondaryLimit(time.Second))
	}},
	{"the code host refuses", true, func(m *monkey) func() bool {
		return m.codeHostAnswers(githubserver.Unauthorized, githubserver.Forbidden, githubserver.NotFound, githubserver.Unprocessable)
	}},
	{"the code host hangs", true, func(m *monkey) func() bool {
		m.w.hub.SetLatency(time.Second + time.Duration(m.luck.Int64N(int64(chaosLease))))
		return noticed(m.w.hub.CallCount, func() { m.w.hub.SetLatency(0) })
	}},
	{"the code host's clock differs", false, func(m *monkey) func() bool {
		off := time.Duration(m.luck.IntN(60)-30) * time.Second
		m.w.hub.SetNow(func() time.Time { return time.Now().Add(off) })
		return func() bool { return off != 0 }
	}},
	{"the server's clock differs", true, func(m *monkey) func() bool {
		m.w.crash()
		m.w.setClock(m.w.dir, m.wrongTime())
		return m.serverIsBack
	}},
	{"an agent's clock differs", false, (*monkey).agentWithWrongTime},
	{"the disk is full", true, func(m *monkey) func() bool {
		if !m.smallDisk {
			return nil
		}
		m.w.fillDisk()
		return then(m.w.freeDisk)
	}},
	{"somebody locks the server's database", true, (*monkey).lockDatabase},
	{"somebody edits the cloud", false, (*monkey).editCloud},
}

// strike lets something fail after a random while, and for a random while. Two that
// follow each other may be further apart than a lease.
func (m *monkey) strike() {
	m.w.t.Helper()
	f := faults[m.rng.IntN(len(faults))]
	m.luck = rand.New(rand.NewPCG(m.rng.Uint64(), m.rng.Uint64())) //nolint:gosec // not a secret
	m.wait(m.mostly(1500*time.Millisecond, 2*chaosLease))
	m.w.t.Logf("%s", f.name)
	over := f.begin(m)
	if over == nil {
		m.idle++
		return
	}
	if f.lasts {
		m.wait(m.mostly(2500*time.Millisecond, 3*chaosLease))
	}
	if over() {
		m.made[f.name]++
	} else {
		m.idle++
	}
}

// mostly is the short time, or one time in four the long one.
func (m *monkey) mostly(short, long time.Duration) time.Duration {
	if m.luck.IntN(4) == 0 {
		return long
	}
	return short
}

// wait lasts for up to that time: the very point is to hit anywhere.
func (m *monkey) wait(most time.Duration) { time.Sleep(time.Duration(m.luck.Int64N(int64(most)))) }

// happened is the end of a fault that nothing can miss.
func happened() bool { return true }

// then ends such a fault by a function.
func then(end func()) func() bool {
	return func() bool {
		end()
		return true
	}
}

// noticed ends a fault that something has noticed if a count has grown by then.
func noticed(count func() int, end func()) func() bool {
	before := count()
	return func() bool {
		during := count()
		end()
		return during > before
	}
}

// serverIsBack ends the absence of the server.
func (m *monkey) serverIsBack() bool {
	m.w.t.Helper()
	m.w.start()
	return true
}

// fetches is how often the Git host was asked what the repository has.
func (m *monkey) fetches() int {
	return m.w.git.Requests("GET /" + m.w.fleet().name + ".git/info/refs")
}

// wrongTime is how far a clock is off.
func (m *monkey) wrongTime() time.Duration {
	return time.Duration(m.luck.IntN(20*60+1)-10*60) * time.Second
}

// agentWithWrongTime ends an agent and has the next one in its folder start with another clock.
func (m *monkey) agentWithWrongTime() func() bool {
	m.w.t.Helper()
	dirs := m.w.agentDirs()
	dir := dirs[m.luck.IntN(len(dirs))]
	m.w.setClock(dir, m.wrongTime())
	pids := slices.DeleteFunc([]int{livingIn(dir)}, func(pid int) bool { return pid == 0 })
	return m.killed(pids)
}

// codeHostAnswers lets the next few calls of the code host have one of these answers. Posts
// are tried again after pauses that double, each at the cost of one fault: the end
// takes what is left of them.
func (m *monkey) codeHostAnswers(all ...githubserver.Fault) func() bool {
	m.w.hub.Fail(1+m.luck.IntN(5), []string{"", "GET ", "POST ", "PATCH "}[m.luck.IntN(4)], all[m.luck.IntN(len(all))])
	return noticed(m.w.hub.FailedCount, m.w.hub.Recover)
}

// killApply kills an engine that applies, after a part of what that does.
func (m *monkey) killApply() func() bool {
	m.w.t.Helper()
	applying := m.atWork(applies)
	if len(applying) > 0 {
		m.wait(mostOfApply)
	}
	return m.killed(applying)
}

func anyEngine(string) bool { return true }

func applies(commandLine string) bool { return strings.Contains(commandLine, "\x00apply\x00") }

const mostOfApply = 800 * time.Millisecond

// inWork waits for an engine: any, or one that applies and has done a part of that, and is
// to save its state next.
func (m *monkey) inWork() {
	m.w.t.Helper()
	if m.luck.IntN(2) == 0 {
		m.atWork(anyEngine)
	} else if len(m.atWork(applies)) > 0 {
		m.wait(mostOfApply)
	}
}

// atWork waits for an engine whose command line is such a one, for a few seconds, and returns
// all that there are. It is empty if none begins.
func (m *monkey) atWork(such func(commandLine string) bool) (engines []int) {
	m.w.t.Helper()
	m.soon(func() bool {
		engines = slices.DeleteFunc(m.w.engines(), func(pid int) bool {
			line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
			return !such(string(line))
		})
		return len(engines) > 0
	})
	return engines
}

// soon reports whether something is so within a few seconds.
func (m *monkey) soon(is func() bool) bool {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

// killed kills one of the processes.
func (m *monkey) killed(pids []int) func() bool {
	pid := m.signal(pids, syscall.SIGKILL)
	return func() bool { return pid != 0 }
}

// stopped lets one of the processes hang, and continue at the end.
func (m *monkey) stopped(pids []int) func() bool {
	pid := m.signal(pids, syscall.SIGSTOP)
	if pid == 0 {
		return nil
	}
	return func() bool {
		_ = syscall.Kill(pid, syscall.SIGCONT) // somebody may have killed it meanwhile
		return true
	}
}

// signal sends a signal to one of the processes, and returns which; 0: there was none.
func (m *monkey) signal(pids []int, sig syscall.Signal) int {
	if len(pids) == 0 {
		return 0
	}
	pid := pids[m.luck.IntN(len(pids))]
	if syscall.Kill(pid, sig) != nil {
		return 0 // it is gone
	}
	return pid
}
