package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs"
)

// TestScripts runs the scripts below testdata/script. They are what users type, and what
// they see. Each has its own pool of two nodes and eight cores in $ROOST_DIR, and roost
// and the PBS commands in its PATH. $HOST is the host part of ids, so a script's first
// job is 1.$HOST; $ETC has the samples that come with Roost. In scripts about
// names the pool serves them over DNS at 127.0.0.1:$DNS_PORT.
//
// Beside the commands of testscript there are:
//
//	exits N command…      run a command that must exit with this status
//	until 'regexp' command…
//	                      repeat a command until its output matches
//	capture NAME 'regexp' set a variable to the first group in the last output
//	json [path=value]…    the output was JSON, version 1, with these values:
//	                      job.exit.code=0, jobs.0.id=1.$HOST, jobs.len=3
//	remember, unchanged   record the queue and the daemons; check that they are equal
//	pool start|stop|kill  stop is Ctrl-C and checks that no process is left; kill kills
//	                      all daemons, and leaves the tasks running
//	desktop               the next pool is that of a desktop
//	accounts              the next pool is for all users of the host, and needs root
//	as UID command…       a program that runs a command as a user, in the directory /
//	[limits]              a condition: this machine can limit the memory of tasks
//	[sandbox]             a condition: tasks have a sandbox, which needs root
//	[python:MODULE]       a condition: Debian's Python has this module
//	make kind file        write a file that is too large or unusual for a script
//	written               check that some test damages each file of the daemons
//	damage file words     flip two bits wherever a file has these words
func TestScripts(t *testing.T) {
	t.Parallel()
	bin, program := t.TempDir(), program(t)
	for _, name := range []string{"roost", "qsub", "qstat", "qdel", "qhold", "qrls", "qsig", "qmsg", "qrerun",
		"qselect", "tracejob", "qalter", "qmove", "qorder", "qrun", "pbsnodes", "qmgr", "qenable", "qdisable", "qstart",
		"qstop", "pbsdsh", "pbs_tmrsh", "pbs_release_nodes",
		"pbs_rsub", "pbs_rstat", "pbs_ralter", "pbs_rdel", "printjob", "pbs_attach",
		"pbs_hostn", "condor_dag_checker", "condor_submit_dag", "condor_submit", "condor_q",
		"condor_history", "condor_rm",
		"condor_hold", "condor_release", "condor_version", "condor_status", "condor_wait",
		"squeue", "scontrol", "sacct", "sinfo", "srun", "sbatch", "scancel", "salloc",
		"sacctmgr", "sshare", "sprio", "sstat", "sbcast", "sattach"} {
		to := program
		if slices.Contains([]string{"srun", "sbatch", "scancel", "squeue", "scontrol", "sacct", "sinfo", "sacctmgr",
			"sshare", "sprio", "sstat"}, name) ||
			frame.FindEntry(pbs.LocalEntries(), name) != nil {
			to += "-q"
		}
		if err := os.Symlink(to, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	writeAsProgram(t, bin)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	etc, err := filepath.Abs("../../etc")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Deadline:           time.Now().Add(40 * time.Minute), // an endless wait shows what it waits for
		Setup: func(env *testscript.Env) error {
			dir, err := os.MkdirTemp("", "pool")
			if err != nil {
				return err
			}
			s := &scriptPool{options: PoolOptions{Roost: program, Dir: dir, Nodes: 2, CPUs: 8}}
			env.Values[scriptPoolKey{}] = s
			if strings.HasPrefix(filepath.Base(env.WorkDir), "script-names-") {
				port := freePort(t)
				s.options.DNS = "127.0.0.1:" + port
				env.Setenv("DNS_PORT", port)
			}
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			env.Setenv("ROOST_DIR", dir)
			env.Setenv("HOST", host)
			env.Setenv("ETC", etc)
			env.Setenv("HOME", env.WorkDir) // where PBS jobs begin
			env.Defer(func() {
				if err := s.stop(); err != nil {
					t.Errorf("%s: %v", filepath.Base(env.WorkDir), err)
				}
				os.RemoveAll(dir)
			})
			return s.start(t.Context())
		},
		Condition: scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exitsCmd, "until": untilCmd, "capture": captureCmd, "json": jsonCmd, "remember": rememberCmd,
			"unchanged": unchangedCmd, "pool": controlCmd, "desktop": desktopCmd, "accounts": accountsCmd,
			"make": mkfileCmd, "written": checkWritten, "damage": damageWords,
		},
	})
}

type scriptPoolKey struct{}

// scriptPool is the pool of one script.
type scriptPool struct {
	options PoolOptions
	pool    *Pool
	queue   string
	daemon  string
}

func scriptPoolOf(ts *testscript.TestScript) *scriptPool {
	return ts.Value(scriptPoolKey{}).(*scriptPool)
}

func (s *scriptPool) start(ctx context.Context) (err error) {
	s.pool, err = Start(ctx, s.options)
	return err
}

// stop ends the pool and looks for processes that mention its directory.
func (s *scriptPool) stop() error {
	if s.pool == nil {
		return nil
	}
	if err := s.pool.Stop(); err != nil {
		return err
	}
	s.pool = nil
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		if args, _ := os.ReadFile(file); strings.Contains(string(args), s.options.Dir) {
			err = errors.Join(err, fmt.Errorf("%s is left behind: %q", filepath.Dir(file), args))
		}
	}
	return err
}

func controlCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pool start|stop|kill")
	}
	switch s := scriptPoolOf(ts); args[0] {
	case "start":
		ts.Check(s.start(context.Background()))
	case "stop":
		ts.Check(s.stop())
	case "kill":
		s.pool.Kill()
		s.pool = nil
	default:
		ts.Fatalf("pool %s: it is start, stop or kill", args[0])
	}
}

func desktopCmd(ts *testscript.TestScript, _ bool, _ []string) {
	scriptPoolOf(ts).options.Desktop = true
}

func exitsCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func untilCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until 'regexp' command…")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	var out []byte
	if !pollUntil(context.Background(), awaitTimeout, func() bool {
		out, err = runSilently(ts, args[1:])
		return want.Match(out)
	}) {
		ts.Fatalf("after %v (%v) there is still no match for %q in:\n%s", awaitTimeout, err, args[0], out)
	}
	ts.Exec(args[1], args[2:]...) // for the script to examine
}

// isQuery reports whether a command of a script only queries the schedd.
func isQuery(args []string) bool {
	switch args[0] {
	case "qstat", "pbsnodes":
		return true
	case "roost":
		return len(args) > 1 && slices.Contains([]string{"jobs", "show", "why", "logs", "nodes"}, args[1])
	}
	return false
}

// runSilently runs a command as the script would, without writing it to the script's log.
func runSilently(ts *testscript.TestScript, args []string) ([]byte, error) {
	path := ts.Getenv("PATH")
	env := []string{"PATH=" + path, "HOME=" + ts.Getenv("HOME"), "ROOST_DIR=" + ts.Getenv("ROOST_DIR"),
		"ROOST_DIALECT=" + ts.Getenv("ROOST_DIALECT")}
	if isQuery(args) {
		stdout, stderr, _ := runInProcess(context.Background(), env, args...)
		return []byte(stdout + stderr), nil
	}
	for _, dir := range filepath.SplitList(path) {
		program := filepath.Join(dir, args[0])
		if _, err := os.Stat(program); err != nil {
			continue
		}
		cmd := exec.Command(program, args[1:]...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), env
		return cmd.CombinedOutput()
	}
	return nil, fmt.Errorf("%s: not in PATH", args[0])
}

// captureCmd stores the first group of a regular expression that matches the last
// command's output.
func captureCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME 'regexp'")
	}
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := want.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("there is no match for %q", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// jsonCmd checks the last command's output: a document, or one in each line.
func jsonCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("unsupported: ! json")
	}
	var doc map[string]any
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	for n := 0; n == 0 || decoder.More(); n++ {
		doc = nil
		if err := decoder.Decode(&doc); err != nil {
			ts.Fatalf("this is no JSON: %v", err)
		}
		if doc["v"] != 1.0 {
			ts.Fatalf("its version is %v, want 1", doc["v"])
		}
	}
	for _, arg := range args {
		path, want, _ := strings.Cut(arg, "=")
		if got := fmt.Sprint(jsonPath(doc, path)); got != want {
			ts.Fatalf("%s is %s, want %s", path, got, want)
		}
	}
}

// jsonPath follows a path of names and numbers; len is the length of a list.
func jsonPath(v any, path string) any {
	for _, step := range strings.Split(path, ".") {
		list, isList := v.([]any)
		switch n, err := strconv.Atoi(step); {
		case isList && step == "len":
			return len(list)
		case isList && err == nil && n < len(list):
			v = list[n]
		case isList:
			return nil
		default:
			object, _ := v.(map[string]any)
			v = object[step]
		}
	}
	return v
}

// snapshot returns the queue as its users see it, and the daemons that serve it.
func (s *scriptPool) snapshot(ts *testscript.TestScript) (queue, daemons string) {
	queue, stderr, code := s.pool.Command(context.Background(), "jobs", "--json")
	if code != 0 {
		ts.Fatalf("roost jobs: status %d: %s", code, stderr)
	}
	state, err := s.pool.State()
	ts.Check(err)
	for _, d := range state.Daemons {
		daemons += fmt.Sprintf("%s %d\n", d.Name, d.PID)
	}
	return queue, daemons
}

func rememberCmd(ts *testscript.TestScript, _ bool, _ []string) {
	s := scriptPoolOf(ts)
	s.queue, s.daemon = s.snapshot(ts)
}

func unchangedCmd(ts *testscript.TestScript, _ bool, _ []string) {
	s := scriptPoolOf(ts)
	queue, daemons := s.snapshot(ts)
	if queue != s.queue {
		ts.Fatalf("the queue has changed from\n%s\nto\n%s", s.queue, queue)
	}
	if daemons != s.daemon {
		ts.Fatalf("the daemons have changed from\n%s\nto\n%s", s.daemon, daemons)
	}
}

func mkfileCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: make kind file")
	}
	const head, tail = "job \"j\" {\n  command = [\"true\"]\n", "}\n"
	path, size := ts.MkAbs(args[1]), int64(0)
	var text string
	switch args[0] {
	case "huge": // 100 MB: 20 MB that are valid, and a hole that takes no time to write
		text = head + strings.Repeat("  # nothing but a comment, so many times that nobody would read it\n",
			20_000_000/67)
		size = 100_000_000
	case "deep":
		text = head + "  labels = " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "\n" + tail
	case "binary":
		text = "\x7fELF\x02\x01\x01\x00\x00\xff\xfe\x80" + strings.Repeat("\x00\xfa\xde", 300)
	default:
		ts.Fatalf("make %s: unknown kind", args[0])
	}
	ts.Check(os.WriteFile(path, []byte(text), fs.FileMode(0o644)))
	if size > 0 {
		ts.Check(os.Truncate(path, size))
	}
}
