package flowplan

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/dag"
)

// textTree has files for tests, by names below /data/ann.
type textTree map[string]string

const treeRoot = "/data/ann/"

func (t textTree) find(name string) (string, error) {
	if text, ok := t[strings.TrimPrefix(path.Clean(name), treeRoot)]; ok {
		return text, nil
	}
	return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (t textTree) Open(name string) (io.ReadCloser, error) {
	text, err := t.find(name)
	return io.NopCloser(strings.NewReader(text)), err
}
func (t textTree) Exists(name string) bool { _, err := t.find(name); return err == nil }

func (t textTree) Stat(name string) (fs.FileInfo, error) {
	if _, err := t.find(name); err != nil && name != "/bin/sh" {
		return nil, err
	}
	return fstest.MapFS{"x": {Mode: 0o755}}.Stat("x")
}
func (textTree) Access(string, bool) error            { return nil }
func (textTree) Glob(string) ([]string, error)        { return nil, nil }
func (textTree) LookPath(name string) (string, error) { return "/bin/" + name, nil }
func (t textTree) Read(name string, _ int64) ([]byte, error) {
	text, err := t.find(name)
	return []byte(text), err
}

func testOptions(t textTree) Options {
	return Options{Job: submit.ParseOptions{Dir: "/data/ann", Home: "/home/ann", User: "ann", Files: t,
		Environ: []string{"HOME=/home/ann"}, Now: time.Unix(1e9, 0).UTC()}}
}

// compileText compiles the flow of x.dag.
func compileText(t testing.TB, files textTree) (*dag.Flow, *Jobs, *dag.Diagnostics) {
	t.Helper()
	f, diags := dag.Parse(files, []string{"x.dag"}, dag.ParseOptions{SkipFileTests: true})
	if diags.HasErrors() {
		t.Fatalf("%v", diags.List)
	}
	jobs, diags := Compile(f, testOptions(files))
	return f, jobs, diags
}

// shown returns some attributes of the tasks of a node's job, with the columns filled in.
func shown(f *dag.Flow, jobs *Jobs, name string, attributes ...string) string {
	id, _ := f.Graph.Find([]byte(name))
	n := jobs.Nodes[id]
	t := jobs.Templates[n.Template]
	var all []string
	for task := range t.Job.Count {
		pairs := []string{"$$", "$", "$(TaskIndex)", strconv.Itoa(task)}
		columns := map[string]string{}
		for i, c := range t.Columns {
			value := f.Texts.Text(jobs.Values[int(n.Values)+i*t.Job.Count+task])
			columns[c] = value
			pairs = append(pairs, "$("+c+")", value)
		}
		line := ""
		for _, a := range attributes {
			text, ok := columns[a]
			if e, there := t.Job.Ad.Lookup(a); there && !ok {
				text = e.String()
			}
			line += " " + a + "=" + strings.NewReplacer(pairs...).Replace(text)
		}
		all = append(all, strings.TrimSpace(line))
	}
	return strings.Join(all, "; ")
}

const diamond = `JOB A work.sub
JOB B work.sub
JOB C work.sub
JOB D work.sub
PARENT A CHILD B C
PARENT B C CHILD D
`

// TestCompile checks what the nodes of small flows run.
func TestCompile(t *testing.T) {
	for _, test := range []struct {
		name, dag, job, attributes string
		want                       []string // by node A, B, …
		templates                  int
	}{
		{"no variables", diamond, "executable = /bin/echo\narguments = $(JOB) $(RETRY)\noutput = $(JOB).out",
			"Arguments Out", []string{`Arguments={ "$(JOB)","$(RETRY)" } Out="/data/ann/$(JOB).out"`}, 1},
		{"words", diamond + "VARS A n=\"1\"\nVARS B n=\"22\"\nVARS C n=\"x/y\"\nVARS D n=\"-z\"\n",
			"executable = /bin/echo\narguments = a$(n) b", "Arguments", []string{`Arguments={ "a1","b" }`,
				`Arguments={ "a22","b" }`, `Arguments={ "ax/y","b" }`, `Arguments={ "a-z","b" }`}, 1},
		{"shapes", diamond + "VARS A n=\"-n 1\"\nVARS B n=\"-n 2\"\nVARS C n=\"\"\nVARS D n=\"p q\"\n",
			"executable = /bin/echo\narguments = $(n)", "Arguments", []string{`Arguments={ "-n","1" }`,
				`Arguments={ "-n","2" }`, `Arguments=`, `Arguments={ "p","q" }`}, 2},
		{"absent", diamond + "VARS A n=\"1\"\nVARS B n=\"2\"\n", "executable = /bin/echo\narguments = $(n:none)",
			"Arguments", []string{`Arguments={ "1" }`, `Arguments={ "2" }`, `Arguments={ "none" }`}, 2},
		{"resources", diamond + "VARS A m=\"1GB\"\nVARS B m=\"2048\"\nVARS C m=\"2GB\"\nVARS D m=\"1024\"\n",
			"executable = /bin/echo\nrequest_memory = $(m)\nrequest_cpus = 2", "RequestMemory RequestCpus",
			[]string{"RequestMemory=1073741824 RequestCpus=2", "RequestMemory=2147483648 RequestCpus=2",
				"RequestMemory=2147483648 RequestCpus=2"}, 1},
		{"conditions", diamond + "VARS A k=\"1\"\nVARS B k=\"0\"\nVARS C k=\"1\"\nVARS D k=\"0\"\n",
			"executable = /bin/echo\nif $(k)\narguments = yes\nelse\narguments = no\nendif", "Arguments",
			[]string{`Arguments={ "yes" }`, `Arguments={ "no" }`, `Arguments={ "yes" }`}, 2},
		{"tasks", diamond + "VARS A k=\"1\"\nVARS B k=\"2\"\nVARS C k=\"3\"\nVARS D k=\"4\"\n",
			"executable = /bin/echo\narguments = $(k) $(x) $(Process)\nqueue x in (a, b)", "Arguments",
			[]string{`Arguments={ "1","a","0" }; Arguments={ "1","b","1" }`,
				`Arguments={ "2","a","0" }; Arguments={ "2","b","1" }`}, 1},
		{"number of tasks", diamond + "VARS A k=\"1\"\nVARS B k=\"2\"\nVARS C k=\"1\"\nVARS D k=\"1\"\n",
			"executable = /bin/echo\narguments = $(Process)\nqueue $(k)", "Arguments",
			[]string{`Arguments={ "0" }`, `Arguments={ "0" }; Arguments={ "1" }`}, 2},
		{"functions", diamond + "VARS A f=\"/a/b.c\"\nVARS B f=\"d.e\"\nVARS C f=\"g\"\nVARS D f=\"h.i.j\"\n",
			"executable = /bin/echo\noutput = $Fn(f).out", "Out", []string{`Out="/data/ann/b.out"`,
				`Out="/data/ann/d.out"`,
				`Out="/data/ann/g.out"`, `Out="/data/ann/h.i.out"`}, 1},
		{"macros in values", diamond + "VARS A n=\"$(JOB).a\"\nVARS B n=\"$(JOB).b\"\nVARS C n=\"x\"\n",
			"executable = /bin/echo\narguments = $(n:0)", "Arguments", []string{`Arguments={ "$(JOB).a" }`,
				`Arguments={ "$(JOB).b" }`, `Arguments={ "x" }`, `Arguments={ "0" }`}, 3},
		{"placement",
			"JOB A work.sub\nJOB B work.sub\nVARS A PREPEND n=\"1\"\nVARS A APPEND m=\"2\"\nVARS B n=\"3\"\n" +
				"VARS B APPEND m=\"4\"\n", "executable = /bin/echo\nn = mine\nm = mine\narguments = $(n) $(m)",
			"Arguments",
			[]string{`Arguments={ "mine","2" }`, `Arguments={ "mine","4" }`}, 2},
		{"environment",
			diamond + "VARS A e=\"X=1 Y=2\"\nVARS B e=\"X=3 Y=4\"\nVARS C e=\"X=5 Y=6\"\nVARS D e=\"X=7 Y=8\"\n",
			"executable = /bin/echo\nenvironment = \"$(e) Z=0\"", "Environment", nil, 1},
		{"attributes", "JOB A work.sub\nJOB B work.sub\nVARS A My.Kind=\"\\\"a\\\"\"\nVARS B My.Kind=\"\\\"b\\\"\"\n",
			"executable = /bin/echo", "Labels", nil, 2},
		{"several jobs in one directory", "JOB A work.sub DIR d\nJOB B work.sub DIR d\n", "", "Iwd",
			[]string{`Iwd="/data/ann/d"`, `Iwd="/data/ann/d"`}, 1},
		{"inline", "JOB A {\nexecutable = /bin/echo\narguments = $(n)\n}\nVARS A n=\"5\"\n", "", "Arguments",
			[]string{`Arguments={ "5" }`}, 1},
		{"noop", "JOB A missing.sub NOOP\nJOB B work.sub\n", "executable = /bin/echo", "Cmd", []string{"",
			`Cmd="/bin/echo"`}, 1},
		{"job file",
			diamond + "VARS A n=\"1\" s=\"a b\"\nVARS B n=\"2\" s=\"c\"\nVARS C n=\"3\" s=\"d\"\n" +
				"VARS D n=\"4\" s=\"e\"\n",
			`variable "n" { type = number }
variable "s" {}
variable "RETRY" {}
job "x" {
  command = ["/bin/echo", var.s, "${var.n + 1}", "r${var.RETRY}"]
  memory  = "${var.n}GiB"
}`, "Arguments RequestMemory", []string{`Arguments={ "a b","2","r$(RETRY)" } RequestMemory=1073741824`,
				`Arguments={ "c","3","r$(RETRY)" } RequestMemory=2147483648`}, 1},
		{"job file with tasks", diamond + "VARS A n=\"1\"\nVARS B n=\"2\"\nVARS C n=\"1\"\nVARS D n=\"1\"\n",
			`variable "n" { type = number }
job "x" {
  count = var.n
  command = ["/bin/echo", "${var.n}", "${task.index}", "${task.count}"]
}`, "Arguments", []string{`Arguments={ "1","0","1" }`, `Arguments={ "2","0","2" }; Arguments={ "2","1","2" }`}, 2},
		{"job file with items", diamond + "VARS A n=\"p\"\nVARS B n=\"q\"\nVARS C n=\"r\"\nVARS D n=\"s\"\n",
			`variable "n" {}
job "x" {
  for_each = ["a", "b"]
  command = ["/bin/echo", var.n, each.value, "${task.index * 2}"]
}`, "Arguments", []string{`Arguments={ "p","a","0" }; Arguments={ "p","b","2" }`,
				`Arguments={ "q","a","0" }; Arguments={ "q","b","2" }`}, 1},
		{"slurm", diamond + "VARS A n=\"1\"\nVARS B n=\"2\"\nVARS C n=\"3\"\nVARS D n=\"4\"\n",
			"#!/bin/sh\n#SBATCH --mem=1G\necho $n\n", "RequestMemory", []string{"RequestMemory=1024"}, 1},
	} {
		files := textTree{"x.dag": test.dag, "work.sub": test.job, "d/work.sub": "executable = /bin/echo"}
		f, jobs, diags := compileText(t, files)
		if diags.HasErrors() {
			t.Errorf("%s: %v", test.name, diags.List)
			continue
		}
		for i, want := range test.want {
			name := string(rune('A' + i))
			if got := shown(f, jobs, name, strings.Fields(test.attributes)...); got != want {
				t.Errorf("%s: node %s: %s, want %s", test.name, name, got, want)
			}
		}
		if n := len(jobs.Templates) - 1; n != test.templates {
			t.Errorf("%s: %d templates, want %d", test.name, n, test.templates)
		}
	}
}

// TestMistakes checks what is said about mistakes, with the places in both files.
func TestMistakes(t *testing.T) {
	vars := "VARS A n=\"1\"\nVARS B n=\"2\"\nVARS C n=\"three\"\n"
	for _, test := range []struct{ dag, job, want string }{
		{"JOB A none.sub\n", "",
			"none.sub: error: this file cannot be read: open /data/ann/none.sub: file does not " +
				"exist. It is for node A (x.dag:1)."},
		{diamond + vars, "executable = /bin/echo\n\nrequest_memory = $(n:1)",
			`work.sub:3:1: error: this line cannot be ` +
				`used: node C (x.dag:3): "three" is no size`},
		{diamond, "executable = /bin/echo\nqueue\nqueue",
			"work.sub: error: it describes 2 jobs: A node runs one job"},
		{diamond, "executable = /bin/echo\nrequest_memory = $(RETRY)", "RETRY"},
		{diamond, "executable = /bin/echo\nif $(RETRY)\nendif",
			"work.sub:2:1: error: this line cannot be used: What is " +
				"known only when a node begins cannot be used here. It is for node A (x.dag:1) and 3 more."},
		{"JOB A {\nexecutable = /bin/echo\nrequest_memory = lots\n}\n", "",
			"x.dag:3:1: error: this line cannot be used: " +
				`"lots" is no size`},
		{diamond + vars, "variable \"n\" {\n  type    = number\n  default = 1\n}\njob \"x\" {\n" +
			"  command = [\"/bin/echo\", \"${var.n + 1}\"]\n}\n",
			"work.sub:1:10: error: --var n: the value does not fit"},
		{diamond, "job \"x\" {\n  comand = [\"/bin/echo\"]\n}\n",
			"work.sub:2:3: error: there is no setting \"comand\""},
		{diamond, "executable = /bin/echo\nx509userproxy = p", "work.sub:2:1: warning: this is not carried over:"},
	} {
		_, _, diags := compileText(t, textTree{"x.dag": test.dag, "work.sub": test.job})
		var all []string
		for _, d := range diags.List {
			all = append(all, d.String())
		}
		if !strings.Contains(strings.Join(all, "\n"), test.want) {
			t.Errorf("%q: %q, want %q", test.job, all, test.want)
		}
	}
}

// TestTogetherAndAlone compiles random flows as a whole and node by node. Each node has
// to run the same.
func TestTogetherAndAlone(t *testing.T) {
	jobs := []string{
		"executable = $(exe:/bin/echo)\narguments = $(a) x$(b)y \\\"$(c)\\\"\noutput = $(JOB).$Fn(b)\nqueue",
		"executable = /bin/echo\narguments = \"$(a) '$(b)' $$(c)\"\nenvironment = \"B=$(b) $(a:A=1)\"\nqueue 2",
		"if defined c\nn = 2\nendif\nexecutable = /bin/echo\narguments = $(n:1) $(b)\n" +
			"transfer_input_files = $(c), $(b)\nqueue $(n:1) x in (p, q)",
		"executable = /bin/echo\n+Kind = \"$(b)\"\narguments = $INT(i) $SUBSTR(b,1) $CHOICE(i,x,y,z)\n" +
			"i = $(d:1)\nqueue",
	}
	values := []string{"1", "2", "-n 1", "-m 2", "a,b", "c, d", "x/y.z", "A=5", "B=6 C=7", "", "it''s",
		"$(JOB)", "$Fn(d)",
		"(1 + 1)", "\u00e9", "100%", "a=b"}
	attributes := strings.Fields("Cmd Arguments Environment Out TransferIn RequestMemory Labels Count")
	compared := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		files := textTree{"work.sub": jobs[seed%4]}
		lines := map[string]string{}
		nodes := 1 + rng.IntN(12)
		for i := range nodes {
			name := fmt.Sprintf("N%d", i)
			text := "JOB " + name + " work.sub\n"
			for _, v := range []string{"a", "b", "c", "d"} {
				if rng.IntN(4) > 0 {
					value := values[rng.IntN(len(values))]
					if v == "d" {
						value = strconv.Itoa(rng.IntN(3))
					}
					text += fmt.Sprintf("VARS %s %s%s=\"%s\"\n", name, []string{"", "PREPEND ",
						"APPEND "}[rng.IntN(3)], v,
						value)
				}
			}
			lines[name] = text
			files["x.dag"] += text
		}
		f, together, diags := compileText(t, files)
		failed := diags.HasErrors()
		alone := false
		for name, text := range lines {
			one, single, diags := compileText(t, textTree{"work.sub": files["work.sub"], "x.dag": text})
			if diags.HasErrors() {
				alone = true
				continue
			}
			if failed {
				continue
			}
			compared++
			if got, want := shown(f, together, name, attributes...), shown(one, single,
				name, attributes...); got != want {
				t.Errorf("seed %d, node %s: together\n%s\nalone\n%s\n%s%s", seed, name, got, want,
					files["work.sub"], text)
			}
		}
		if failed != alone {
			t.Errorf("seed %d: together refused: %v, alone: %v\n%v\n%s%s", seed, failed, alone, diags.List,
				files["work.sub"], files["x.dag"])
		}
	}
	if compared < 100 {
		t.Errorf("only %d nodes were compared", compared)
	}
}

// FuzzVariables checks that nodes with any variables run together what they run alone.
func FuzzVariables(f *testing.F) {
	f.Add("executable = /bin/echo\narguments = $(a) $Fn(b)\nqueue $(b:2)", "-n 1", "x/y.z", "APPEND ")
	f.Add("executable = $(a)\nif $(b)\narguments = \"'$(a)'\"\nendif\nrequest_memory = $(b)", "1", "$(a),(", "")
	f.Add("+x = $(a)\ntransfer_input_files = $(a),$(b)\nexecutable = /bin/echo", "a=b c", "$$(", "PREPEND ")
	f.Fuzz(func(t *testing.T, job, a, b, placement string) {
		if strings.ContainsAny(a+b, "\"\\\n\r\x00") || len(job) > 500 {
			return
		}
		text := "JOB A work.sub\nJOB B work.sub\nVARS A " + placement + "a=\"" + a + "\" b=\"" + b + "\"\n" +
			"VARS B a=\"" + b +
			"\" b=\"" + a + "\"\n"
		files := textTree{"x.dag": text, "work.sub": job}
		flow, diags := dag.Parse(files, []string{"x.dag"}, dag.ParseOptions{SkipFileTests: true})
		if diags.HasErrors() {
			return
		}
		jobs, diags := Compile(flow, testOptions(files))
		if diags.HasErrors() {
			return
		}
		for i := range 2 {
			n := jobs.Nodes[i]
			if n.Template == 0 || int(n.Template) >= len(jobs.Templates) {
				t.Fatalf("node %d has the template %d of %d", i, n.Template, len(jobs.Templates))
			}
			one := jobs.Templates[n.Template]
			if last := int(n.Values) + len(one.Columns)*one.Job.Count; last > len(jobs.Values) {
				t.Fatalf("node %d has values up to %d of %d", i, last, len(jobs.Values))
			}
		}
	})
}
