package sim

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// smallCell has two machines of four cores and a request for six tasks of two. One
// machine is full for a hundred seconds.
func smallCell(t *testing.T) []byte {
	t.Helper()
	c := &cellstate.CellCheckpoint{RoostVersion: roost.Version, Epoch: 7, Leader: "head", Ledger: ledger.New()}
	c.Now = time.Unix(1_000_000, 0)
	c.Ledger.Apply(&ledger.LogEntry{At: c.Now.UnixNano(), Lead: "head"})
	for i, name := range []string{"n1", "n2"} {
		units, err := gpu.CutUnits(gpu.MachineTopology{CPU: 4000, Memory: 8 * roost.GiB, Cores: make([]gpu.CPUCore, 4)},
			gpu.LayoutConfig{Shape: gpu.SharedLayout})
		if err != nil {
			t.Fatal(err)
		}
		ad := classad.New()
		ad.SetString(roost.AttrName, name)
		gpu.NewFree(units, 0).Describe(ad)
		m := match.NewMachine(name, 1, 1, ad)
		if i == 0 {
			r := roost.Resources{CPU: 4000, Memory: roost.GiB}
			p, _ := m.PlaceNext(nil, gpu.DeviceRequest{Resources: r}, false)
			if m, err = m.AfterClaimsEnd(nil, match.MachineClaim{ID: 1, Submitter: fairshare.Submitter{Owner: "bob"},
				Band: roost.BatchBand, Resources: r, Placement: p, TaskStarted: 999_000, WalltimeEnd: 1_000_100,
				Job: "7.pool"}); err != nil {
				t.Fatal(err)
			}
		}
		c.Machines = append(c.Machines, m)
	}
	a := &cellstate.PendingRequest{AdText: "[]", OwnWanted: 6}
	a.Key, a.Submitter, a.Band, a.Walltime = match.RequestKey{Schedd: "pool", ID: 1}, fairshare.Submitter{Owner: "ann"},
		roost.BatchBand, 50*time.Second
	var err error
	if a.Class, err = match.NewClass(a.AdText, a.Submitter, a.Band,
		roost.Resources{CPU: 2000, Memory: roost.GiB}); err != nil {
		t.Fatal(err)
	}
	c.Requests = []*cellstate.PendingRequest{a}
	c.Jobs = []cellstate.JobRow{{ID: "12.pool", Owner: "ann", Request: 1, Waiting: 6},
		{ID: "7.pool", Owner: "bob", Request: 2, Running: 1}}
	var b bytes.Buffer
	if err := cellstate.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSimLive holds what fit, when and whatif print of a file and of the pool, and what
// they refuse.
func TestSimLive(t *testing.T) {
	cell := smallCell(t)
	two := &wire.Resources{MilliCpu: 2000}
	f := &clitest.FakeSchedd{CellCheckpoint: cell, Jobs: []*wire.JobStatus{
		{Id: "12.pool", Owner: "ann", Band: "batch", RequestId: 1, Tasks: 6,
			Counts: map[string]uint32{"idle": 6, "completed": 3}, Request: two, Ad: "[MaxRunning = 4]"},
		{Id: "13.pool", Owner: "ann", Band: "batch", Tasks: 1, Counts: map[string]uint32{"held": 1}, Request: two,
			Reason: "held by ann"},
		{Id: "14.pool", Owner: "ann", Band: "batch", Tasks: 1, Counts: map[string]uint32{"held": 1}, Request: two,
			Reason: "refused, as it was submitted while no negotiator could be asked: too much"},
		{Id: "15.pool", Owner: "ann", Band: "batch", Tasks: 1, Counts: map[string]uint32{"removed": 1}, Request: two},
	}}
	dir := f.Serve(t)
	for _, test := range []struct {
		line, out, stderr string // out and stderr: what has to be in them
		code              int
	}{
		{"roost sim fit small.cell --request cpus=1",
			"now           4 tasks would start at once\n  in its turn   2, with what waits already\n  empty         " +
				"8, if nothing ran\n  where         4 on n2\n", "", 0},
		{"roost sim fit small.cell --request cpus=1 --json", `"limited_by": [`, "", 0},
		{"roost sim fit --request cpus=3", "now           1 task would start", "", 0},
		{"roost sim fit small.cell --request cpus=9", "",
			"none of the 2 machines can run it: too small: has 4 cpus at most", 65},
		{"roost sim fit small.cell --request cpus=", "", "on --request line 3", 65},
		{"roost sim fit small.cell --request job.hcl", "now           2 tasks", "", 0},
		{"roost sim fit small.cell --request no.hcl", "", "no.hcl: no such file", 66},
		{"roost sim fit small.cell", "", "fit needs --request", 64},
		{"roost sim when small.cell 12", "12.pool: 6 tasks that wait\n2 machines and 6 tasks that wait", "", 0},
		{"roost sim when small.cell 12", "by walltimes   at once\n  its last task  ", "", 0},
		{"roost sim when 12.pool", "12.pool: 6 tasks", "", 0},
		{"roost sim when small.cell 12 --json", `"last_seconds": 100`, "", 0},
		{"roost sim when small.cell 7", "", "7.pool: all of its tasks have started", 75},
		{"roost sim when small.cell 8", "", "8: no job of that number is in the queue: it has ended", 68},
		{"roost sim when 13", "", "13.pool: it does not wait for a machine: held by ann", 75},
		{"roost sim when 15", "", "15: no job of that number is in the queue", 68},
		{"roost sim when small.cell 12.moon", "", "12.moon: no job of that name", 68},
		{"roost sim when small.cell job.hcl", "job.hcl: 1 task, if it is submitted then\n", "", 0},
		{"roost sim when", "", "when needs a job", 64},
		{"roost sim whatif small.cell --drain n2", "It would evict nothing.", "", 0},
		{"roost sim whatif small.cell --remove n1", "- 7.pool of bob on n1: its machine is taken away", "", 0},
		{"roost sim whatif small.cell --add n2*3", "12.pool  ann       6  in 1m40s  at once", "", 0},
		{"roost sim whatif --add n2*3", "12.pool  ann", "", 0},
		{"roost sim whatif small.cell --quota ann/batch=cpus:4",
			"user ann asks for cpus 12 in batch, and the quota is cpus 4: so new jobs are refused", "", 0},
		{"roost sim whatif --quota ann/batch=cpus:9",
			"user ann asks for cpus 10 in batch, and the quota is cpus 9: so new jobs are refused", "", 0},
		{"roost sim whatif --quota ann/batch=cpus:none", "user ann may ask for any amount in batch", "", 0},
		{"roost sim whatif --setting default_quota=none --quota ann/batch=cpus:11", "which is within it", "", 0},
		{"roost sim whatif small.cell --quota ann/batch=wings:4", "", "--quota ann/batch=wings:4", 64},
		{"roost sim whatif small.cell --drain n2 --json", `"evicts": []`, "", 0},
		{"roost sim whatif small.cell", "", "whatif needs something to change", 64},
		{"roost sim whatif small.cell --drain n3", "", "n3: there is no node of that name\ndid you mean n1?", 68},
		{"roost sim whatif small.cell --remove moon", "", "moon: there is no node of that name\n", 68},
		{"roost sim whatif small.cell --add moon*2", "", "moon: there is no node of that name\n", 68},
		{"roost sim whatif small.cell --remove n1 --drain n1",
			"", "n1: what is taken away cannot be drained as well", 64},
		{"roost sim whatif small.cell --queue night=start", "", "night: there is no queue of that name", 68},
		{"roost sim fit small.cell --request cpus=4;count=3;gang=true", "",
			"not even one gang of 3 fits, and none would on empty machines: ", 65},
		{"roost sim when small.cell 12[3]", "12.pool: 6 tasks that wait", "", 0},
		{"roost sim whatif small.cell --setting backfil=off", "", "did you mean", 65},
		{"roost sim whatif small.cell --drain n2 --span soon", "", "--span soon", 64},
		{"roost sim whatif job.hcl --drain n2", "", "job.hcl: it is no checkpoint of a cell", 65},
		{"roost sim whatif cut.cell --drain n2", "", "cut.cell: it is cut off", 65},
		{"roost sim whatif small.cell --request cpus=1", "", "--request has no meaning for roost sim whatif", 64},
		{"roost sim show small.cell", "The cell at 1970-01-12T13:46:40Z, led by head\n2 nodes: ", "", 0},
		{"roost sim show small.cell", "12.pool  ann    batch      6  all 2 machines are busy", "", 0},
		{"roost sim show small.cell --json", `"why": "all 2 machines are busy`, "", 0},
		{"roost sim show", "12.pool", "", 0},
		{"roost sim show cut.cell", "", "cut.cell: it is cut off", 65},
		{"roost sim show small.cell --csv x.csv", "", "--csv has no meaning for roost sim show", 64},
		{"roost cell checkpoint --into past", "", "", 0},
		{"roost cell checkpoint --into past --keep soon", "", "--keep soon: it is no length of time", 64},
		{"roost cell checkpoint --into small.cell", "", "small.cell", 73},
		{"roost cell checkpoint new.cell", "", "", 0},
		{"roost cell checkpoint small.cell", "", "small.cell is there already", 73},
	} {
		a, stdout, stderr := newSimApp(t, dir)
		files := map[string][]byte{"small.cell": cell, "cut.cell": cell[:len(cell)/2],
			"job.hcl": []byte("job \"j\" {\n  command = [\"/bin/true\"]\n  cpus = 2\n  walltime = \"30s\"\n}\n")}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(a.Dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code := a.Run(t.Context(), strings.Fields(test.line))
		if code != test.code || !strings.Contains(stdout.String(), test.out) ||
			!strings.Contains(stderr.String(), test.stderr) || test.out == "" && stdout.Len() > 0 {
			t.Errorf("%s: exit status %d, stdout:\n%s\nstderr:\n%s", test.line, code, stdout, stderr)
		}
		if strings.HasSuffix(test.line, "new.cell") {
			file, err := os.Open(filepath.Join(a.Dir, "new.cell"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if p, err := cellstate.Read(file); err != nil || len(p.Jobs) != 3 || !p.Jobs[0].Refused ||
				p.Jobs[1].Refused || p.Jobs[2].Request != 1 || p.Jobs[2].Waiting != 6 || p.Jobs[2].OpenTasks != 6 ||
				p.Jobs[2].MaxRunning != 4 {
				t.Errorf("the checkpoint has jobs %+v, %v", p, err)
			}
		}
	}
}

// TestSimLiveResults holds what the answers write as tables and as pictures.
func TestSimLiveResults(t *testing.T) {
	for _, test := range []struct{ line, table, picture string }{
		{"fit small.cell --request cpus=1",
			"cell,machine,tasks,preempting_tasks\nnow,n2,4,0\nbehind,n2,2,0\nempty,n1,4,0\nempty,n2,4,0\n",
			">in its turn<"},
		{"when small.cell 12",
			"by,at_seconds,started_tasks,tasks\nasked,0,2,6\nasked,50,4,6\nasked,100,6,6\npredicted,0,2,6\n",
			">When 12.pool starts<"},
		{
			"whatif small.cell --add n2*1",
			"at_seconds,before_waiting_tasks,before_started_tasks,before_evicted_tasks,after_waiting_tasks,after_started_tasks,after_evicted_tasks\n0,4,2,0,2,4,0\n50,2,4,0,0,6,0\n100,0,6,0,0,6,0\n",
			">Until the last task starts; never is as long as was looked<",
		},
		{"whatif small.cell --remove n1", "\n0,4,2,0,4,2,1\n", ">Queue<"},
	} {
		a, _, stderr := newSimApp(t, t.TempDir())
		if err := os.WriteFile(filepath.Join(a.Dir, "small.cell"), smallCell(t), 0o600); err != nil {
			t.Fatal(err)
		}
		code := a.Run(t.Context(), strings.Fields("roost sim "+test.line+" --csv out.csv --svg out.svg"))
		table, _ := os.ReadFile(filepath.Join(a.Dir, "out.csv"))
		picture, _ := os.ReadFile(filepath.Join(a.Dir, "out.svg"))
		if code != 0 || !strings.Contains(string(table), test.table) ||
			!strings.Contains(string(picture), test.picture) {
			t.Errorf("%s: exit status %d: %s\nit wrote\n%s\nand %.300s", test.line, code, stderr, table, picture)
		}
	}
}

// TestSimLiveRefused holds that of jobs that quotas refused it is said which ones they
// would allow.
func TestSimLiveRefused(t *testing.T) {
	p, err := cellstate.Read(bytes.NewReader(smallCell(t)))
	if err != nil {
		t.Fatal(err)
	}
	epoch, _ := p.Ledger.Epoch()
	quota := ledger.AdminCommand{Verb: ledger.VerbSet, Kind: ledger.KindQuota, Trusted: true,
		Object: []byte(`{"user": "ann", "band": "batch", "most": {"tasks": 6}}`)}
	if r := p.Ledger.Apply(&ledger.LogEntry{At: p.Now.UnixNano(), Epoch: epoch,
		Commands: []ledger.AdminCommand{quota}}); r.Err != nil || r.Commands[0] != nil {
		t.Fatal(r)
	}
	p.Jobs = []cellstate.JobRow{{ID: "12.pool", Owner: "ann", Band: "batch", Request: 1, Waiting: 6, OpenTasks: 6}}
	for _, id := range []string{"13.pool", "14.pool", "15.pool"} {
		p.Jobs = append(p.Jobs, cellstate.JobRow{ID: id, Owner: "ann", Band: "batch", OpenTasks: 1,
			WaitReason: "refused", Refused: true})
	}
	for quota, want := range map[string]string{
		"6": "the quota is tasks 6: which is within it\n\n  It is assumed",
		"7": "\n  quotas refused 13.pool, which is held for that; they would allow it then, once somebody has " +
			"released it\n",
		"8": "\n  quotas refused 13.pool, 14.pool, which are held for that; they would allow them then, " +
			"once somebody has released them\n",
	} {
		a, stdout, stderr := newSimApp(t, t.TempDir())
		var text bytes.Buffer
		if err := cellstate.Write(&text, p); err != nil {
			t.Fatal(err)
		}
		a.Stdin = &text
		if code := a.Run(t.Context(), strings.Fields("roost sim whatif - --quota ann/batch=tasks:"+quota)); code != 0 ||
			!strings.Contains(stdout.String(), want) {
			t.Errorf("a quota of %s: exit status %d, stdout:\n%s\nstderr:\n%s", quota, code, stdout, stderr)
		}
	}
}
