package submit

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

var updateGolden = flag.Bool("update", false, "rewrite the expected results in testdata")

// testTree is a directory tree that exists only in the test: paths to contents. A name
// ending in "/" is a directory. Contents that begin with "!" make the file unreadable,
// and with "#" executable.
type testTree map[string]string

type testTreeNode struct {
	name string
	body string
	dir  bool
}

func (n testTreeNode) Name() string       { return path.Base(n.name) }
func (n testTreeNode) Size() int64        { return int64(len(n.body)) }
func (n testTreeNode) Mode() fs.FileMode  { return 0o644 }
func (n testTreeNode) ModTime() time.Time { return time.Time{} }
func (n testTreeNode) IsDir() bool        { return n.dir }
func (n testTreeNode) Sys() any           { return nil }

func (t testTree) Stat(name string) (fs.FileInfo, error) {
	if body, ok := t[name]; ok {
		return testTreeNode{name, body, false}, nil
	}
	for file := range t {
		if strings.HasPrefix(file, strings.TrimSuffix(name, "/")+"/") {
			return testTreeNode{name: name, dir: true}, nil
		}
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func (t testTree) Access(name string, exec bool) error {
	if strings.HasPrefix(t[name], "!") || exec && !strings.HasPrefix(t[name], "#") {
		return &fs.PathError{Op: "access", Path: name, Err: fs.ErrPermission}
	}
	return nil
}

func (t testTree) Glob(pattern string) (found []string, err error) {
	for name := range t {
		ok, err := path.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, name)
		}
	}
	sort.Strings(found)
	return found, nil
}

func (t testTree) Read(name string, limit int64) ([]byte, error) {
	body, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("more than %d bytes", limit)
	}
	return []byte(body), nil
}

func (t testTree) LookPath(name string) (string, error) {
	for _, dir := range []string{"/usr/bin/", "/bin/"} {
		if _, ok := t[dir+name]; ok {
			return dir + name, nil
		}
	}
	return "", fs.ErrNotExist
}

var testFiles = testTree{
	"/usr/bin/python3": "#", "/usr/bin/perl": "#", "/bin/sh": "#", "/bin/echo": "#", "/bin/bash": "#", "/bin/true": "#",
	"/home/ann/sims/simulate": "#", "/home/ann/sims/bin/tool": "#", "/home/ann/sims/notes.txt": "hello\n",
	"/home/ann/sims/data/a.csv": "x,y\n1,2\n3,4\n", "/home/ann/sims/data/b.csv": "x,y\n5,6\n",
	"/home/ann/sims/data/c.csv": "x,y\n",
	"/home/ann/sims/secret.txt": "!", "/home/ann/sims/logs/old.txt": "", "/shared/params.json": "{}",
}

func testOptions(name string) ParseOptions {
	return ParseOptions{
		Filename: name, Dir: "/home/ann/sims", Home: "/home/ann", User: "ann", Files: testFiles,
		Environ: []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PRICE=5$"},
		Now:     time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
}

// dumpJobs formats jobs for review.
func dumpJobs(jobs []Job) string {
	var s strings.Builder
	for _, j := range jobs {
		fmt.Fprintf(&s, "job %s: %d tasks, array %v\n", j.Name, j.Count, j.Array)
		for name, e := range j.Ad.All() {
			fmt.Fprintf(&s, "  %s = %s\n", name, e)
		}
		for _, c := range j.Columns {
			values := c.Values
			if len(values) > 6 {
				values = values[:6]
			}
			fmt.Fprintf(&s, "  column %s: %q\n", c.Name, values)
		}
	}
	return s.String()
}

// fileFlags reads flags from a first line "# --var a=b --var c=d".
func fileFlags(src []byte, opts *ParseOptions) {
	line, _, _ := strings.Cut(string(src), "\n")
	if rest, ok := strings.CutPrefix(line, "# --var "); ok {
		opts.Vars = map[string]string{}
		for _, v := range strings.Split(rest, " --var ") {
			name, value, _ := strings.Cut(v, "=")
			opts.Vars[name] = value
		}
	}
}

// TestGolden reads each job file of testdata. Beside testdata/jobs/x.hcl are the jobs
// that it makes, and beside testdata/errors/x.hcl the messages and the exit status.
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/[ej]*/*.hcl") // the others are flows
	if len(files) == 0 {
		t.Fatal("no testdata")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".hcl"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			opts := testOptions(filepath.Base(file))
			fileFlags(src, &opts)
			jobs, diags := ParseFile(src, opts)
			got := dumpJobs(jobs)
			if len(diags) > 0 {
				got += Format(diags, src, 100, false)
			}
			if kind := ExitKind(diags); kind != 0 {
				got += fmt.Sprintf("exit %d\n", kind.ExitCode())
			}
			if bad := strings.HasPrefix(file, "testdata/errors/"); bad != diags.HasErrors() {
				t.Errorf("errors: %v, want %v\n%s", diags.HasErrors(), bad, got)
			}
			compareGolden(t, strings.TrimSuffix(file, ".hcl")+".txt", got)
			if jobs2, diags2 := ParseFile(src, opts); dumpJobs(jobs2)+Format(diags2, src, 100, false) != dumpJobs(jobs)+
				Format(diags, src, 100, false) {
				t.Error("reading it twice gives two results")
			}
		})
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *updateGolden {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
