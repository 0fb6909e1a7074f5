package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/memorydir"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresServer is Debian's server with a directory and a socket of its own.
type postgresServer struct {
	dir     string
	make    func() *exec.Cmd
	command *exec.Cmd
	ended   chan error
	mu      sync.Mutex
	made    int // databases
}

// findPostgres returns a program of the server, which Debian does not put into the path.
func findPostgres(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(paths) == 0 {
		return ""
	}
	return paths[len(paths)-1]
}

// unprivileged returns who runs the server, which refuses root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("there is no user nobody")
}

// postgresSetup is what a server is set up for.
type postgresSetup struct {
	inMemory bool // its files are, where memorydir uses memory
	settings []string
}

// A benchmark measures a server as its users have it. Tests make many small databases and
// kill no server: each page that a session touches or writes is a cost without a purpose.
var (
	benchmarkSetup = postgresSetup{settings: []string{"fsync=on", "max_wal_size=4GB", "shared_buffers=512MB"}}
	testSetup      = postgresSetup{inMemory: true, settings: []string{"fsync=off", "full_page_writes=off",
		"wal_level=minimal", "max_wal_senders=0", "max_wal_size=256MB", "shared_buffers=64MB", "jit=off",
		"autovacuum=off"}}
)

// startPostgres starts a server that listens on a socket in its own directory alone.
func startPostgres(setup postgresSetup) (*postgresServer, error) {
	initdb, postgres := findPostgres("initdb"), findPostgres("postgres")
	if initdb == "" || postgres == "" {
		return nil, errors.New("PostgreSQL's server is not installed (apt-get install postgresql)")
	}
	credential, err := unprivileged()
	if err != nil {
		return nil, err
	}
	parent := "/tmp" // a socket's path is short, and every user enters this directory
	if setup.inMemory && memorydir.Used() {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "roost-postgres-")
	if err != nil {
		return nil, err
	}
	s := &postgresServer{dir: dir, ended: make(chan error, 1)}
	if credential != nil {
		if err := os.Chown(dir, int(credential.Uid), int(credential.Gid)); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	run := func(program string, args ...string) *exec.Cmd {
		c := exec.Command(program, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "LC_ALL=C")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Pdeathsig: syscall.SIGINT}
		return c
	}
	data := filepath.Join(dir, "data")
	if out, err := run(initdb, "-D", data, "-U", "roost", "-A", "trust", "-E", "UTF8",
		"-k", "-N").CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(dir))
	}
	s.make = func() *exec.Cmd {
		args := []string{"-D", data, "-k", dir, "-c", "listen_addresses="}
		for _, setting := range setup.settings {
			args = append(args, "-c", setting)
		}
		return run(postgres, args...)
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// start starts the server, and returns when it answers.
func (s *postgresServer) start() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.command = s.make()
	s.command.Stdout, s.command.Stderr = log, log
	if err := s.command.Start(); err != nil {
		return err
	}
	go func(c *exec.Cmd) { s.ended <- c.Wait() }(s.command)
	return s.wait()
}

// shutDown stops the server at once: its sessions end, and transactions with them.
func (s *postgresServer) shutDown() {
	s.command.Process.Signal(syscall.SIGINT)
	<-s.ended
}

// wait returns when the server answers.
func (s *postgresServer) wait() error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 600 {
		db := s.open("postgres")
		err := db.Ping()
		db.Close()
		if err == nil {
			return nil
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres: %w: %s", err, log)
		case <-tick.C:
		}
	}
	return errors.New("postgres does not answer")
}

func (s *postgresServer) address(database string) string {
	return "host=" + s.dir + " user=roost dbname=" + database
}

func (s *postgresServer) open(database string) *sql.DB {
	config, err := pgx.ParseConfig(s.address(database))
	if err != nil {
		panic(err)
	}
	return stdlib.OpenDB(*config)
}

// database makes a database, and returns its address. Copying the
// files of the template takes a third of the CPU time that copying through the log takes.
func (s *postgresServer) database(t testing.TB) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	name := "test" + strconv.Itoa(s.made)
	db := s.open("postgres")
	defer db.Close()
	_, err := db.ExecContext(t.Context(), `CREATE DATABASE `+name+` STRATEGY file_copy`)
	if err != nil { // before version 15 this was the only strategy, and had no name
		_, err = db.ExecContext(t.Context(), `CREATE DATABASE `+name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.address(name)
}

// cpuTime returns the CPU time of the server and of its processes that still run.
func (s *postgresServer) cpuTime(t testing.TB) (ticks time.Duration) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 13 || fields[1] != strconv.Itoa(s.command.Process.Pid) {
			continue
		}
		for _, field := range fields[11:13] { // user and system
			n, _ := strconv.Atoi(field)
			ticks += time.Duration(n) * time.Second / 100
		}
	}
	return ticks
}

func (s *postgresServer) stop() {
	if s.command != nil && s.command.Process != nil {
		s.shutDown()
	}
	os.RemoveAll(s.dir)
}

// testServer starts the server when the first test asks for it.
var testServer = sync.OnceValues(func() (*postgresServer, error) { return startPostgres(testSetup) })

// serverAsked reports whether testServer has been called.
var serverAsked sync.Once

func TestMain(m *testing.M) {
	memorydir.Use()
	code := m.Run()
	asked := true
	serverAsked.Do(func() { asked = false })
	if asked {
		if s, err := testServer(); err == nil {
			s.stop()
		}
	}
	os.Exit(code)
}

// postgresAddress returns a new database, or skips the test.
func postgresAddress(t testing.TB) string {
	t.Helper()
	serverAsked.Do(func() {})
	s, err := testServer()
	if err != nil {
		t.Skipf("SKIPPED: tests against PostgreSQL: %v", err)
	}
	return s.database(t)
}
