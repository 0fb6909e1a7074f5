package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallSimPool is six tasks of a minute on two machines of one core.
const smallSimPool = `machines "node" { count = 2 }
job "j" {
  command = ["/bin/true"]
  count = 6
}
load "j" {}
`

// timedPods are two pods that came and went.
const timedPods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
	"p1,4000,8192,1,500,,LS,Running,1000,1060,1000\np2,4000,8192,1,500,T4,BE,Running,1010,1040,1010\n"

// TestSimRunPause holds what the commands of the debugger do, and what it says of those
// without sense.
func TestSimRunPause(t *testing.T) {
	for _, test := range []struct {
		line, stdin string
		out, stderr []string // in this order
		code        int
	}{
		{"roost sim run mix.hcl --pause", "step\nstep 2\nstep 60s\nshow\nuntil 90s\njobs\nmachines\nr\nq\nstep\n",
			[]string{
				"0.000s  schedd0: its disk is read", "0.000s  node0: lends 1 cores", "0.000s  node1: lends",
				"     60.000s  waiting 4, running 2, over 0; 100.0 %",
				"     60.000s  waiting 4, running 2, over 0; 100.0 %",
				"  user              2 cores\n  2 tasks that began had waited for 0.",
				"     90.000s  waiting 2, running 2, over 2", "ID         NAME  USER", "1.schedd0", "j",
				"MACHINE  CPUS FREE", "node0",
				"    180.", "waiting 0, running 0, over 6", "all jobs are over\n", "mix.hcl: 1 job on 2 machines",
				"tasks         6 have come", "run once, digest",
			}, nil, 0},
		{"roost sim run mix.hcl --pause --until 2m", "jobs\nrun\nstep 5\njobs zzz\nmachines node1\nhelp\n", []string{
			"to come", "    120.000s  waiting ", "this is as far as --until lets it go\nthis is as far",
			"no such job\n", "node1 ",
			"step [N]", "quit ", "mix.hcl: 1 job",
		}, nil, 0},
		{"roost sim run mix.hcl --pause", "stop\nfly\nstep soon\nstep -1\nuntil\nuntil 0s\nshow me\n\n# " +
			"a remark\nhlep\n", []string{"mix.hcl: 1 job"}, []string{
			"stop: there is no such command; did you mean step?",
			"fly: there is no such command; there are step, until, run, show, jobs, machines, quit, help",
			"step soon: that is neither a number of changes nor a length of time", "step -1: that is neither",
			"until: when?", "until 0s: that is no time after 0.000s", "show: me is too much",
			"hlep: there is no such command; did you mean help?", "8 commands made no sense",
		}, 64},
		{"roost sim run c.cell --pause", "jobs\nmachines\nstep 100s\njobs 7\n",
			[]string{"7.pool", "12.pool", "n1", "    100.000s  waiting ", "7.pool  bob"}, nil, 0},
		{"roost sim run - --pause", smallSimPool, nil, []string{"--pause reads commands from the standard input"}, 64},
		{"roost sim run mix.hcl --pause --json", "", nil,
			[]string{"--pause is for people, and --json for programs"}, 64},
	} {
		a, stdout, stderr := newSimApp(t, t.TempDir())
		for name, text := range map[string][]byte{"mix.hcl": []byte(smallSimPool), "c.cell": smallCell(t)} {
			if err := os.WriteFile(filepath.Join(a.Dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a.Stdin = strings.NewReader(test.stdin)
		code := a.Run(t.Context(), strings.Fields(test.line))
		for text, want := range map[string][]string{stdout.String(): test.out, stderr.String(): test.stderr} {
			rest := text
			for _, w := range want {
				at := strings.Index(rest, w)
				if at < 0 {
					t.Errorf("%s: there is no %q in what is left of\n%s", test.line, w, text)
					break
				}
				rest = rest[at+len(w):]
			}
		}
		if code != test.code {
			t.Errorf("%s: exit status %d, want %d", test.line, code, test.code)
		}
	}
}

// TestSimRun holds what is said of a pool that was run, what goes into files, and what is
// refused.
func TestSimRun(t *testing.T) {
	cell := smallCell(t)
	for _, test := range []simLine{
		{"roost sim run mix.hcl", "", "mix.hcl: 1 job on 2 machines, with 1 schedd and 1 central manager\n\n  " +
			"tasks         6 have come to their end, 0 run, 0 wait\n", "", 0},
		{"roost sim run mix.hcl", "", "the longest 2m00s\n", "", 0},
		{"roost sim run mix.hcl --until 90s", "", "tasks         2 have come to their end, 2 run, 2 wait", "", 0},
		{"roost sim run mix.hcl --step 1m", "",
			"     60.000s  waiting 4, running 2, over 0; 100.0 % of the processors used\n", "", 0},
		{"roost sim run mix.hcl --events", "", "attempt 1 of 1[0].schedd0 begins on claim", "", 0},
		{"roost sim run mix.hcl --json --seed 7", "", `"finished": true`, "", 0},
		{"roost sim run mix.hcl --csv out.csv --svg out.svg", "", "digest", "", 0},
		{"roost sim run -", smallSimPool, "-: 1 job on 2 machines", "", 0},
		{"roost sim run -", smallLog, "-: 4 jobs on 1 machine", "", 0},
		{"roost sim run - --machines 2", smallLog, "tasks         6 have come to their end", "", 0},
		{"roost sim run - --machines 5", smallLog, "", "4 processors on 5 machines", 65},
		{"roost sim run -", smallLog + "5 4 -1\n", "", "line 6: invalid request: it has 3 fields, want 18", 65},
		{"roost sim run -", strings.TrimPrefix(smallLog, "; MaxProcs: 4\n"), "", "--processors", 65},
		{"roost sim run -", "machines \"node\" { cpus = 0 }", "", "cpus is less than a thousandth of a core", 65},
		{"roost sim run -", "", "", "the job file is empty\n\n  on standard input line 1", 65},
		{"roost sim run mix.hcl --machines 3", "", "", "--machines and --processors are for logs", 64},
		{"roost sim run c.cell", "", "c.cell: 2 jobs on 2 machines, with 1 schedd and 1 central manager\nfrom " +
			"1970-01-12 13:46:40 on\n\n  tasks         7 have come to their end, 0 run, 0 wait\n", "", 0},
		{"roost sim run c.cell", "", "    - jobs that are held, or wait for a time or another job, are not played\n",
			"", 0},
		{"roost sim run c.cell --step 1m --until 70s", "",
			"     60.000s  waiting 2, running 3, over 2; 100.0 % of the processors used\n", "", 0},
		{"roost sim run c.cell --events", "", "      0.000s  n1: attempt 1 of 2[0].schedd0 begins on claim 1\n", "", 0},
		{"roost sim run c.cell --json", "", `"not_played": [`, "", 0},
		{"roost sim run c.cell --machines 3", "", "", "--machines and --processors are for logs", 64},
		{"roost sim run cut.cell", "", "", "cut.cell: it is cut off after line ", 65},
		{"roost sim run -", `{"roost_cell_checkpoint":{"version":2,"roost":"9.0"}}` + "\n", "",
			"standard input: line 1: ", 65},
		{"roost sim run -", `{"roost_cell_checkpoint":{"version":2,"roost":"9.0"}}` + "\n", "",
			"version 2 of the format is not one that this Roost knows, which is 1; Roost 9.0 wrote it", 65},
		{"roost sim run nodes.csv timed.csv", "",
			"timed.csv: 2 jobs on 3 machines, with 1 schedd and 1 central manager\n\n  tasks         2 have come to " +
				"their end, 0 run, 0 wait\n", "", 0},
		{"roost sim run nodes.csv timed.csv --machines 1 --step 10s", "", "timed.csv: 2 jobs on 1 machine", "", 0},
		{"roost sim run nodes.csv timed.csv --machines 4", "",
			"", "timed.csv: the list has 3 nodes, and 4 are wanted", 65},
		{"roost sim run nodes.csv timed.csv --machines 0", "", "", "--machines 0: it is 1 or more", 64},
		{"roost sim run nodes.csv timed.csv --processors 4", "", "", "--processors is for logs", 64},
		{"roost sim run nodes.csv pods.csv", "", "",
			"pods.csv: line 2: of pod p1 is not said when it came and went: creation_time and deletion_time are wanted",
			65},
		{"roost sim run nodes.csv cut.csv", "", "",
			"cut.csv: line 7: invalid request: it has another number of columns", 65},
		{"roost sim run pods.csv", "", "",
			"pods.csv: it is a list of the openb trace, of which both are wanted: roost sim run NODES PODS", 65},
		{"roost sim run mix.hcl --until soon", "", "", "--until soon: that is no length of time", 64},
		{"roost sim run nowhere", "", "", "nowhere: no such file or directory", 66},
	} {
		dir := t.TempDir()
		simFiles(t, dir)
		test.run(t, dir, map[string][]byte{"mix.hcl": []byte(smallSimPool), "c.cell": cell,
			"cut.cell": cell[:len(cell)-30], "timed.csv": []byte(timedPods)})
		if strings.Contains(test.line, "out.csv") {
			table, _ := os.ReadFile(filepath.Join(dir, "out.csv"))
			picture, _ := os.ReadFile(filepath.Join(dir, "out.svg"))
			if !strings.HasPrefix(string(table),
				"at_seconds,waiting_tasks,running_tasks,over_tasks,used_cores,user_cores\n0.000,0,0,0,0.000,0.000\n") ||
				!strings.Contains(string(picture), "</svg>") {
				t.Errorf("%s: it wrote %.200s and %.200s", test.line, table, picture)
			}
		}
	}
}

// servicePool is a service of six tasks on three machines of four cores. A task is ready
// within ten seconds, and two may be down.
const servicePool = `machines "node" {
  count  = 3
  cpus   = 4
  memory = "8GiB"
}
job "web" {
  command = ["/bin/true"]
  count   = 6
  service {}
  check "up" { exec = ["/bin/true"] }
  update {
    at_once  = 2
    max_down = 2
    settle   = "10s"
  }
}
load "web" { run = "10s" }
`

// TestSimRunServices checks the output about updates of services and drained machines. No
// more tasks are down than may be.
func TestSimRunServices(t *testing.T) {
	files := map[string][]byte{"web.hcl": []byte(servicePool), "mix.hcl": []byte(smallSimPool)}
	for _, test := range []simLine{
		{"roost sim run web.hcl", "", "services      6 of 6 tasks are ready", "", 0},
		{"roost sim run web.hcl --update web@10m", "", "update        of 1.schedd0 at 600.", "", 0},
		{"roost sim run web.hcl --update web@10m", "", "; at least 4 of 6 tasks were ready\n", "", 0},
		{"roost sim run web.hcl --update web@10m --until 605s", "", "it still goes on", "", 0},
		{"roost sim run web.hcl --drain node0@10m+30m", "", "drain         of node0 at 600.000s: its ", "", 0},
		{"roost sim run web.hcl --drain node?@10m --json", "", `"machine": "node2"`, "", 0},
		{"roost sim run web.hcl --update web@10m --json", "", `"state": "done"`, "", 0},
		{"roost sim run web.hcl --update web", "", "", "--update web: that is no name with a time", 64},
		{"roost sim run web.hcl --update web@10m+1m", "", "", "--update web@10m+1m: an update has no length", 64},
		{"roost sim run web.hcl --drain node1@10m+0s", "", "", "as in --drain node3@20m", 64},
		{"roost sim run web.hcl --update hub@10m", "", "", "its services: web", 64},
		{"roost sim run web.hcl --drain n@10m", "", "", "the first of its 3 machines is node0", 64},
		{"roost sim run web.hcl --update hub@10m", "", "", "--update hub@10m: the file has no service of that name", 64},
		{"roost sim run mix.hcl --update j@10m", "", "", "the file has no service of that name", 64},
		{"roost sim run web.hcl --drain n@10m", "", "", "--drain n@10m: no machine has such a name", 64},
	} {
		test.run(t, t.TempDir(), files)
	}
}
