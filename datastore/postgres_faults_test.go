package datastore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/migrations"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

func openOptions(t testing.TB, opts datastore.Options) (*datastore.Store, error) {
	t.Helper()
	if opts.Keys == nil {
		opts.Keys = testKeys(t, 'k')
	}
	opts.Now = func() time.Time { return noon }
	store, err := datastore.Open(t.Context(), opts)
	if err == nil {
		t.Cleanup(func() { _ = store.Close() })
	}
	return store, err
}

// TestPostgresIsRefused: what a database is refused with says what to do, and has no password
// in it.
func TestPostgresIsRefused(t *testing.T) {
	t.Parallel()
	const secret = "wrong-password"
	d := postgresserver.New(t, "")
	url := d.URL()
	newer, readOnly := postgresserver.New(t, emptyPostgres(t)), postgresserver.New(t, emptyPostgres(t))
	later := postgresserver.New(t, emptyPostgres(t))
	foreign, latin := postgresserver.New(t, ""), postgresserver.New(t, "")
	for _, prepare := range []func() (string, error){
		func() (string, error) {
			return newer.Query(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)`)
		},
		func() (string, error) {
			return later.Query(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true); UPDATE schema_use SET version = 999, oldest = 998`)
		},
		func() (string, error) {
			return d.Server.Query(`ALTER DATABASE ` + readOnly.Name + ` SET default_transaction_read_only = on`)
		},
		func() (string, error) { return d.Server.Query(`ALTER DATABASE ` + foreign.Name + ` OWNER TO postgres`) },
		func() (string, error) { return d.Server.Query(`DROP DATABASE ` + latin.Name) },
		func() (string, error) {
			return d.Server.Query(`CREATE DATABASE ` + latin.Name + ` TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' OWNER ` + postgresserver.Role)
		},
	} {
		if _, err := prepare(); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		url      string
		password func() (string, error)
		keys     byte
		want     []string
	}{
		"wrong password":     {url, func() (string, error) { return secret, nil }, 'k', []string{"user or the password", "pg_hba.conf"}},
		"no password":        {url, nil, 'k', []string{"user or the password"}},
		"unreadable":         {url, func() (string, error) { return "", errors.New("read file p") }, 'k', []string{"read file p"}},
		"no such database":   {strings.Replace(url, d.Name, "nosuch", 1), d.Password, 'k', []string{"no such database", "create it"}},
		"nobody there":       {"postgres://holdfast@127.0.0.1:1/x", d.Password, 'k', []string{"cannot be reached", "start it"}},
		"not a URL":          {"mysql://x", d.Password, 'k', []string{"postgres://USER@HOST"}},
		"a password in it":   {strings.Replace(url, "@", ":"+secret+"@", 1), d.Password, 'k', []string{"contains the password"}},
		"a newer schema":     {newer.URL(), d.Password, 'k', []string{"version 999", "run the version that wrote it"}},
		"one for newer ones": {later.URL(), d.Password, 'k', []string{"version 999", "knows version 998 at least"}},
		"read-only":          {readOnly.URL(), d.Password, 'k', []string{"takes no writes", "primary"}},
		"another owner":      {foreign.URL(), d.Password, 'k', []string{"lacks rights", "own the database"}},
		"another encoding":   {latin.URL(), d.Password, 'k', []string{"LATIN1", "ENCODING 'UTF8'"}},
		"a wrong parameter":  {strings.Replace(url, "sslmode=disable", "sslmode=always", 1), d.Password, 'k', []string{"read the URL"}},
		"a password as well": {url + "&password=" + secret, d.Password, 'k', []string{"contains the password"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openOptions(t, datastore.Options{
				Path: filepath.Join(memory.Dir(t), "holdfast.db"), Postgres: postgres.Address{URL: test.url, Password: test.password}, Keys: testKeys(t, test.keys),
			})
			if err == nil {
				t.Fatal("Open() succeeded")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open() = %v, want %q", err, want)
				}
			}
			if password, _ := d.Password(); strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), password) {
				t.Errorf("Open() = %v, which has a password", err)
			}
		})
	}
}

// TestPostgresOfANewerVersion: a schema that says that this version can use it is used as it is.
func TestPostgresOfANewerVersion(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	if _, err := d.Query(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true);
		UPDATE schema_use SET version = 999, oldest = ` + strconv.Itoa(migrations.OldestUser)); err != nil {
		t.Fatal(err)
	}
	store := must[*datastore.Store](t)(openOptions(t, optionsOf(t, d)))
	create(t, store, newRun(1))
	opts := optionsOf(t, d)
	opts.Keys = testKeys(t, 'x')
	if _, err := openOptions(t, opts); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("Open() with another key = %v", err)
	}
}

// TestReplicasOfAnOlderVersion: a schema is not changed under servers that could not use it then.
func TestReplicasOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	old := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "old")))
	vacant := func(oldest int64) error { return datastore.Vacant(t.Context(), old, 2, oldest) }
	if err := vacant(2); err != nil {
		t.Errorf("a change that the other server can live with: %v", err)
	}
	if err := vacant(1000); !errors.Is(err, holdfast.ErrLocked) || !strings.Contains(err.Error(), "stop it, and all replicas of its version") {
		t.Errorf("a change that it cannot live with: %v", err)
	}
}

// TestPostgresOfAnotherKey: a database that was written with another key is refused.
func TestPostgresOfAnotherKey(t *testing.T) {
	t.Parallel()
	opts := onPostgres(t)
	opts.Keys = testKeys(t, 'x')
	if _, err := openOptions(t, opts); err == nil || !strings.Contains(err.Error(), "another key") || strings.Contains(err.Error(), "reached") {
		t.Errorf("Open() = %v", err)
	}
}

// TestPostgresThatIsOpen: a database is not guarded by a password that it does not ask for.
func TestPostgresThatIsOpen(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, "")
	if err := postgres.Guarded(t.Context(), postgres.Address{URL: d.URL()}); err != nil {
		t.Errorf("Guarded() = %v", err)
	}
	open := postgresserver.Start(t)
	if err := postgres.Guarded(t.Context(), postgres.Address{URL: open.URL()}); !errors.Is(err, postgres.ErrOpen) {
		t.Errorf("Guarded() of a database without passwords = %v, want ErrOpen", err)
	}
}

// TestDataFolderRemembersItsDatabase: a start without the setting, or with another database,
// is refused, and so is one that would leave records behind.
func TestDataFolderRemembersItsDatabase(t *testing.T) {
	t.Parallel()
	refused := func(opts datastore.Options, want string) {
		t.Helper()
		if _, err := openOptions(t, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open() = %v, want %q", err, want)
		}
	}
	first := onPostgres(t)
	store := must[*datastore.Store](t)(openOptions(t, first))
	create(t, store, newRun(1))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	refused(datastore.Options{Path: first.Path}, "set datastore.url")
	if _, err := os.Stat(first.Path); err == nil {
		t.Error("a database of SQLite was made all the same")
	}
	other := optionsOf(t, postgresserver.New(t, ""))
	other.Path = first.Path
	refused(other, "look at datastore.url")
	if err := must[*datastore.Store](t)(openOptions(t, first)).Close(); err != nil {
		t.Error(err)
	}

	lite := datastore.Options{Path: emptyPath(t)}
	if err := must[*datastore.Store](t)(openOptions(t, lite)).Close(); err != nil {
		t.Fatal(err)
	}
	both := onPostgres(t)
	both.Path = lite.Path
	refused(both, "has records in SQLite")
	if err := must[*datastore.Store](t)(openOptions(t, lite)).Close(); err != nil {
		t.Errorf("after that, with SQLite: %v", err)
	}
}

// TestPostgresHasOneServer: a second one is refused while the first lives; after its end it
// is let in at once.
func TestPostgresHasOneServer(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	first := must[*datastore.Store](t)(openOptions(t, optionsOf(t, d)))
	_, err := openOptions(t, optionsOf(t, d))
	if !errors.Is(err, holdfast.ErrLocked) || !strings.Contains(err.Error(), "only one server may use a database") {
		t.Errorf("Open() of a second server = %v, want ErrLocked", err)
	}
	select {
	case <-first.Lost():
		t.Error("the first server has lost the database")
	default:
	}
	create(t, first, newRun(1))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next := must[*datastore.Store](t)(openOptions(t, optionsOf(t, d)))
	create(t, next, newRun(2))

	// Somebody takes it, as a server does that has not heard of the first one for long.
	if _, err := d.Query(`UPDATE leases SET owner = 'x y another machine' WHERE name = 'server'`); err != nil {
		t.Fatal(err)
	}
	<-next.Lost()
	if err := next.CreateRun(t.Context(), newRun(3)); !errors.Is(err, holdfast.ErrLocked) {
		t.Errorf("CreateRun() of a server that has lost the database = %v, want ErrLocked", err)
	}
}

// TestPostgresServerThatDied: whoever starts in the same data folder has the database at once,
// anybody else after the lease.
func TestPostgresServerThatDied(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	opts := optionsOf(t, d)
	store := must[*datastore.Store](t)(openOptions(t, opts))
	place := datastore.PlaceOf(store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	died := func(place string) {
		t.Helper()
		if _, err := d.Query(`INSERT INTO leases (name, owner, expires_at) VALUES ('server', '` + place + ` nonce machine',
			(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint + 7000000000)`); err != nil {
			t.Fatal(err)
		}
	}
	died(place)
	again := begin(func() error { return second(openOptions(t, opts)) })
	<-again.done
	if again.err != nil {
		t.Fatal(again.err)
	}
	if n := must[string](t)(d.Query(`SELECT COUNT(*) FROM leases WHERE name = 'server' AND owner NOT LIKE '% nonce %'`)); n != "1" {
		t.Error("the lease is still that of the server that died")
	}

	e := postgresserver.New(t, emptyPostgres(t))
	d = e
	died("elsewhere")
	must[*datastore.Store](t)(openOptions(t, optionsOf(t, e)))
}

// TestPostgresStopsAndStarts: what is written while the server is restarted, or killed, is
// written once it is back.
func TestPostgresStopsAndStarts(t *testing.T) {
	t.Parallel()
	server := postgresserver.StartGuarded(t, true)
	store := must[*datastore.Store](t)(openOptions(t, optionsOf(t, server.New(t, ""))))
	ctx := t.Context()
	var group sync.WaitGroup
	stop := make(chan struct{})
	stored := make([][]holdfast.Run, 4)
	for worker := range stored {
		group.Go(func() {
			for n := worker * 10_000; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				err := store.CreateRun(ctx, newRun(n))
				switch {
				case err == nil:
					stored[worker] = append(stored[worker], newRun(n))
				case !strings.Contains(err.Error(), "not known"): // COMMIT was sent, and nobody has answered
					t.Errorf("CreateRun() while the database restarts = %v", err)
				}
			}
		})
	}
	for _, end := range []func(){server.Stop, server.Kill} {
		time.Sleep(300 * time.Millisecond)
		end()
		time.Sleep(time.Second)
		server.Restart()
	}
	time.Sleep(300 * time.Millisecond)
	close(stop)
	group.Wait()
	n := 0
	for _, runs := range stored {
		for _, run := range runs {
			if n++; second(store.Run(ctx, run.ID)) != nil {
				t.Errorf("run %s is lost", run.ID)
			}
		}
	}
	t.Logf("%d runs were stored", n)
	if store.DiskProblem() != "" {
		t.Errorf("DiskProblem() = %q after all", store.DiskProblem())
	}
}

// TestPostgresIsFull: it says so, and continues once there is room.
func TestPostgresIsFull(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	store := must[*datastore.Store](t)(openOptions(t, optionsOf(t, d)))
	raise := func(code string) {
		t.Helper()
		if _, err := d.Query(`CREATE OR REPLACE FUNCTION full_disk() RETURNS TRIGGER LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '` + code + `'; END; $$;
			CREATE OR REPLACE TRIGGER full_disk BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION full_disk()`); err != nil {
			t.Fatal(err)
		}
	}
	for code, want := range map[string]string{
		"53100": "the disk of the server's database is full", "58030": "cannot be read or written", "53200": "lacks memory",
	} {
		raise(code)
		err := store.CreateRun(t.Context(), newRun(1))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(store.DiskProblem(), want) {
			t.Errorf("CreateRun() with %s = %v, DiskProblem() = %q; want %q", code, err, store.DiskProblem(), want)
		}
	}
	// What fits into the pages of another table is written: the disk is full all the same.
	raise("53100")
	if err := store.CreateRun(t.Context(), newRun(1)); err == nil {
		t.Error("a run is created on a full disk")
	}
	if err := store.Audit(t.Context(), holdfast.AuditEntry{Actor: "somebody", Action: "something"}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(store.DiskProblem(), "is full") {
		t.Errorf("DiskProblem() = %q after one write of two", store.DiskProblem())
	}
	if _, err := d.Query(`DROP TRIGGER full_disk ON runs`); err != nil {
		t.Fatal(err)
	}
	create(t, store, newRun(1))
}

// TestTextThatPostgresCannotKeep: zero bytes, and what is not UTF-8, are replaced, and found
// again under the same name.
func TestTextThatPostgresCannotKeep(t *testing.T) {
	t.Parallel()
	store, ctx := openPostgres(t), t.Context()
	for _, text := range []string{"a\x00b", "c\xffd", "ä\x00\xff"} {
		if err := store.Audit(ctx, holdfast.AuditEntry{Actor: "x", Action: "plan", Object: text, Detail: text}); err != nil {
			t.Error(err)
		}
		if trail := must[[]holdfast.AuditEntry](t)(store.AuditTrail(ctx, text, 10)); len(trail) != 1 {
			t.Errorf("%q is not found", text)
		}
	}
}

// cutter is a proxy in front of a database. It ends a connection when the client sends some
// text, once: before the server gets it, or after.
type cutter struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	text  []byte
	after bool
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	c := &cutter{listener: must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")), server: server}
	t.Cleanup(func() { _ = c.listener.Close() })
	go func() {
		for {
			conn, err := c.listener.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

// cut has the next connection that sends a text end.
func (c *cutter) cut(text string, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text, c.after = []byte(text), after
}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	buffer := make([]byte, 1<<20)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		c.mu.Lock()
		hit := len(c.text) > 0 && bytes.Contains(buffer[:n], c.text)
		if hit {
			c.text = nil
		}
		after := c.after
		c.mu.Unlock()
		if hit {
			_ = client.(*net.TCPConn).SetLinger(0)
			client.Close() // nobody hears the answer
		}
		if hit && !after {
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil || hit {
			time.Sleep(200 * time.Millisecond) // it works on it
			return
		}
	}
}

// TestConnectionEnds: a transaction that had no effect is made again; of one whose COMMIT was
// sent nobody knows, and it is not.
func TestConnectionEnds(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	proxy := newCutter(t, strings.Split(strings.Split(d.URL(), "@")[1], "/")[0])
	opts := optionsOf(t, d)
	opts.Postgres.URL = strings.Replace(d.URL(), proxy.server, proxy.listener.Addr().String(), 1)
	store := must[*datastore.Store](t)(openOptions(t, opts))
	ctx := t.Context()
	exists := func(n int) bool { return second(store.Run(ctx, newRun(n).ID)) == nil }

	create(t, store, newRun(0)) // the statement is compiled
	proxy.cut(newRun(1).ID, false)
	if err := store.CreateRun(ctx, newRun(1)); err != nil || !exists(1) {
		t.Errorf("CreateRun() over a connection that ends before COMMIT = %v", err)
	}
	for n, after := range map[int]bool{2: false, 3: true} {
		proxy.cut("commit", after)
		err := store.CreateRun(ctx, newRun(n))
		if err == nil || !strings.Contains(err.Error(), "it is not known whether this was stored") || !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("CreateRun() over a connection that ends with COMMIT = %v", err)
		}
		for wait := 0; after && !exists(n) && wait < 100; wait++ {
			time.Sleep(20 * time.Millisecond)
		}
		if exists(n) != after {
			t.Errorf("run %d exists: %t", n, exists(n))
		}
	}
}

// TestStandbyIsLeft: sessions of a server that no longer accepts writes are not used again.
func TestStandbyIsLeft(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	store := must[*datastore.Store](t)(openOptions(t, optionsOf(t, d)))
	create(t, store, newRun(1))
	// Only sessions that are open now become read-only: a new one finds the primary.
	datastore.DemoteSessions(t.Context(), store)
	if err := store.CreateRun(t.Context(), newRun(2)); err != nil {
		t.Errorf("CreateRun() after a failover = %v", err)
	}
}

// TestCanceledWrite: what has begun ends, and what waits for its turn does not begin.
func TestCanceledWrite(t *testing.T) {
	t.Parallel()
	store := openPostgres(t)
	if err := store.CreateRun(ended(t), newRun(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("CreateRun() of a canceled context = %v", err)
	}
	if second(store.Run(t.Context(), newRun(1).ID)) == nil {
		t.Error("it was stored")
	}
}
