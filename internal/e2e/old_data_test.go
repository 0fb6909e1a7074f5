package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/checksum"
	"github.com/roost-batch/roost/internal/config"
)

// TestOldData has this version read what earlier versions have written. That is the
// queue, the state of the negotiator, the claims of a startd, the history, the accounts
// and the stored packages; scripts/old-data.sh writes them. What commands said then they
// must say now, and the jobs go on.
func TestOldData(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: short: whole pools are started")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: the jobs in old data are those of root")
	}
	archives, err := filepath.Glob("testdata/releases/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("there are no data of earlier versions (%v)", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".tar.gz"), func(t *testing.T) {
			t.Parallel()
			o := &oldData{T: t, dir: openDir(t)}
			o.unpack(path)
			o.refuseNewer()
			o.start()
			o.compareAll()
			o.continueJobs()
		})
	}
}

// oldData is the directory of a node that an earlier version has written.
type oldData struct {
	*testing.T
	dir  string
	pool *Pool
}

func (o *oldData) poolDir() string { return filepath.Join(o.dir, "pool") }

// unpack unpacks an archive into the directory of the pool.
func (o *oldData) unpack(path string) {
	f, err := os.Open(path)
	if err != nil {
		o.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		o.Fatal(err)
	}
	files := tar.NewReader(unzipped)
	for {
		head, err := files.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			o.Fatal(err)
		}
		to := filepath.Join(o.poolDir(), filepath.Clean("/"+head.Name))
		if head.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, head.FileInfo().Mode().Perm())
		} else if head.Typeflag == tar.TypeReg {
			err = writeSparse(to, files, head.FileInfo().Mode().Perm())
		}
		if err != nil {
			o.Fatal(err)
		}
	}
}

// writeSparse writes a file with holes where it has only zeros.
func writeSparse(path string, from io.Reader, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	page, size := make([]byte, 4096), int64(0)
	for {
		n, err := io.ReadFull(from, page)
		if n > 0 && !bytes.Equal(page[:n], make([]byte, n)) {
			if _, err := f.WriteAt(page[:n], size); err != nil {
				return errors.Join(err, f.Close())
			}
		}
		size += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return errors.Join(f.Truncate(size), f.Close())
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
}

// node returns the node file. The archive's own has the directory of another machine.
func (o *oldData) node() *config.Node {
	d := config.StartdSettings{Name: "n1", AllowRoot: true}
	d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 8000, 4<<30, 4<<30
	return &config.Node{Name: "release", Dir: o.poolDir(), Collector: &config.CollectorSettings{},
		Negotiator: &config.NegotiatorSettings{}, Images: &config.CheckpointServerSettings{},
		Accountant: &config.AccountantSettings{}, Startds: []config.StartdSettings{d},
		Schedd: &config.ScheddSettings{AllowRoot: true, KeepHistory: 100000 * time.Hour}}
}

// refuseNewer raises the format of the schedd's log, as a later version would. The schedd
// must say so, and change nothing in the file.
func (o *oldData) refuseNewer() {
	segments, _ := filepath.Glob(filepath.Join(o.poolDir(), "schedd", "queue.db.log", "*.log"))
	if len(segments) == 0 {
		o.Fatal("the old data have no job log")
	}
	path := segments[len(segments)-1]
	old, err := os.ReadFile(path)
	if err != nil {
		o.Fatal(err)
	}
	const format, sum = 8, 36 // offsets in the header of a segment
	later := bytes.Clone(old)
	binary.BigEndian.PutUint32(later[format:], 99)
	binary.BigEndian.PutUint32(later[sum:], checksum.Of(later[:sum]))
	if err := os.WriteFile(path, later, 0o600); err != nil {
		o.Fatal(err)
	}
	file := filepath.Join(o.dir, "later.hcl")
	if err := os.WriteFile(file, config.Write(o.node()), 0o600); err != nil {
		o.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(o.poolDir(), "run"), 0o711); err != nil {
		o.Fatal(err)
	}
	out, err := exec.CommandContext(o.Context(), program(o.T), "schedd", "--config", file).CombinedOutput()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || exit.ExitCode() != roost.BadConfig.ExitCode() || !strings.Contains(string(out),
		"its format is 99, and this program knows 1: a newer version of Roost wrote it, and is needed to read it") {
		o.Errorf("a schedd opens a log of a later version: %v\n%s", err, out)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, later) {
		o.Errorf("a schedd has changed a log that it cannot read (%v)", err)
	}
	if err := os.WriteFile(path, old, 0o600); err != nil {
		o.Fatal(err)
	}
}

func (o *oldData) start() {
	var err error
	o.pool, err = Start(o.Context(), PoolOptions{Roost: program(o.T), Dir: o.poolDir(), Node: o.node()})
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() {
		if o.Failed() {
			o.Logf("the pool:\n%s\n%s", o.pool.Output(), o.daemonLogs())
		}
		o.pool.Stop()
	})
	o.pool.awaitOutput(o.T, "n1", "nodes")
}

func (o *oldData) daemonLogs() (text string) {
	paths, _ := filepath.Glob(filepath.Join(o.poolDir(), "log", "*"))
	for _, path := range paths {
		more, _ := os.ReadFile(path)
		text += fmt.Sprintf("-- %s\n%s", path, more)
	}
	return text
}

// compareAll compares what commands say with what they said when the data were written.
func (o *oldData) compareAll() {
	for file, args := range map[string]string{"group": "group", "quota": "quota", "limit": "limit", "queue": "queue",
		"admin": "admin", "package": "package list", "history": "history"} {
		o.compare(file, strings.Fields(args), func(any) bool { return true })
	}
	o.compare("settings", []string{"cell", "settings"}, func(v any) bool {
		setting, is := v.(map[string]any)
		return !is || setting["name"] == nil || setting["set_by"] != nil // defaults may change
	})
	o.compare("jobs", []string{"jobs", "--all", "--history"}, func(v any) bool {
		job, is := v.(map[string]any)
		return !is || job["state"] != "running"
	})
	var then, now struct {
		Usage struct {
			Ended  int
			Charge float64 `json:"charged_cpu"`
		}
	}
	o.decode(o.recorded("usage"), &then)
	awaitTrue(o.T, "the accounts are read", func() bool {
		o.decode([]byte(o.pool.mustRun(o.T, "usage", "--json")), &now)
		return now.Usage.Ended >= then.Usage.Ended && now.Usage.Charge >= then.Usage.Charge
	})
}

func (o *oldData) recorded(file string) []byte {
	o.Helper()
	text, err := os.ReadFile(filepath.Join(o.poolDir(), "expected", file+".json"))
	if err != nil {
		o.Fatal(err)
	}
	return text
}

func (o *oldData) decode(text []byte, into any) {
	o.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		o.Fatalf("%v: %s", err, text)
	}
}

// compare compares one output. What fixed refuses may differ now, and so may the member
// reason, which is for people. Further members may have been added.
func (o *oldData) compare(file string, args []string, fixed func(any) bool) {
	o.Helper()
	then := documents(o.T, o.recorded(file))
	now := documents(o.T, []byte(o.pool.mustRun(o.T, append(args, "--json")...)))
	if at := firstDifference(then, now, fixed); at != "" {
		o.Errorf("roost %s says something else than when the data were written: %s", strings.Join(args, " "), at)
	}
}

// documents decodes JSON documents, one after another.
func documents(t *testing.T, text []byte) (all []any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all = append(all, v)
	}
}

// firstDifference returns where a value lacks or changes something of an earlier one.
func firstDifference(then, now any, fixed func(any) bool) string {
	if !fixed(then) {
		return ""
	}
	switch then := then.(type) {
	case map[string]any:
		now, _ := now.(map[string]any)
		for key, v := range then {
			if key == "reason" {
				continue
			}
			if at := firstDifference(v, now[key], fixed); at != "" {
				return "." + key + at
			}
		}
		return ""
	case []any:
		now, _ := now.([]any)
		for _, v := range then {
			if !fixed(v) {
				continue
			}
			// they have no common order
			if !slices.ContainsFunc(now, func(n any) bool { return firstDifference(v, n, fixed) == "" }) {
				return fmt.Sprintf("[]: %v is not in %v", v, now)
			}
		}
		return ""
	}
	if !reflect.DeepEqual(then, now) {
		return fmt.Sprintf(": was %v, is %v", then, now)
	}
	return ""
}

// continueJobs lets the jobs go on that waited when the data were written, and those that
// ran.
func (o *oldData) continueJobs() {
	p, t := o.pool, o.T
	if got := p.mustRun(t, "logs", "1[3]"); got != "written by task 3\n" {
		o.Errorf("the output of an ended task is %q", got)
	}
	for _, name := range []string{"@held", "@after", "@array"} {
		p.mustRun(t, "release", name)
	}
	p.mustRun(t, "wait", "@held", "@after", "@array")
	for of, want := range map[string]string{"@held": "was held\n", "@after": "comes after\n", "4[19]": "element 19\n"} {
		if got := p.mustRun(t, "logs", of); got != want {
			o.Errorf("the output of %s is %q, want %q", of, got, want)
		}
	}
	p.mustRun(t, "wait", "@runs") // its second attempt, as no process of the first one is there
	if got := p.mustRun(t, "logs", "@runs"); !strings.Contains(got, "again") {
		o.Errorf("the output of a job that ran is %q", got)
	}
	p.mustRun(t, "wait", "--ready", "@service")
	p.mustRun(t, "cron", "--json", "@nightly")
	if id := strings.TrimSpace(p.mustRun(t, "run", "--detach", "--", "true")); id != "10.release" {
		o.Errorf("the next job is %s, want 10.release", id)
	}
}
