package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/submit"
)

// directives are those of qsub's tables, each with a part of the comment if it is not
// carried over. except names job attributes that may differ from qsub's.
var directives = []struct{ line, why, except string }{
	{"-a 203012241830", "", ""}, {"-a 203012241830.15", "", "DeferralTime"}, {"-a 3012241830", "", ""},
	{"-a 1830", "", ""}, {"-a 241830", "the day with its year", "DeferralTime"},
	{"-A physics", "", ""}, {"-P optics", "", ""}, {"-A physics -P optics", "", ""}, {"-P optics -A physics", "", ""},
	{"-c n", "", ""}, {"-c s", "", ""}, {"-c c", "", ""}, {"-c w", "", ""}, {"-c c=30", "", ""}, {"-c w=5", "", ""},
	{"-c u", "", ""}, {"-c x", "checkpoint block", ""},
	{"-C '#X'", "command line only", ""}, {"-e err", "", ""}, {"-o out", "", ""}, {"-o out -e err", "", ""},
	{"-o host:/data/out", "", ""}, {"-o /data/out -e /data/err", "", ""},
	{"-o /dev/null -e /dev/null", "", ""}, {"-o /data/$PBS_JOBNAME.log", "", ""}, {"-o /data/out/", "", "Out"},
	{"-h", "", ""}, {"-I", "interactive", ""}, {"-X", "interactive", ""},
	{"-j oe", "", ""}, {"-j eo", "", ""}, {"-j eo -e err", "", ""}, {"-j n", "", ""},
	{"-J 0-9", "", "ArrayIndexes"}, {"-J 1-10:3", "", ""}, {"-J 5-20%4", "", ""}, {"-t 1,3,7-9%2", "", ""},
	{"-t 7", "", ""}, {"-J 5-1", "no indexes", ""},
	{"-k o", "", ""}, {"-k e", "", ""}, {"-k oe", "", ""}, {"-k od", "", ""}, {"-k n", "", ""}, {"-R o", "", ""},
	{"-R oe", "", ""}, {"-R oe -j oe", "", ""},
	{"-l ncpus=4", "", ""}, {"-l ncpus=2:mem=1gb", "", ""}, {"-l mem=100mb", "", ""}, {"-l mem=100000b,walltime=90", "",
		""}, {"-l walltime=1:0:5", "", ""}, {"-l vmem=2gb", "", ""}, {"-l vmem=2gb,mem=1gb", "", ""},
	{"-l pmem=200mb,pvmem=1gb", "", ""}, {"-l cput=1:00,pcput=30", "", ""}, {"-l file=10mb", "", ""},
	{"-l nice=5", "", ""}, {"-l ngpus=2", "", ""}, {"-l ngpus=1,gpu_mem=4gb", "", ""}, {"-l gpu_mem=4gb", "", ""},
	{"-l host=n1", "", ""}, {"-l arch=linux", "", ""}, {"-l min_walltime=1:00,max_walltime=2:00", "the longer one", ""},
	{"-l soft_walltime=5:00", "walltime", ""}, {"-l software=matlab", "roost limit", ""},
	{"-l ompthreads=2", "", ""}, {"-l mpiprocs=3", "", ""}, {"-l procs=4", "", ""}, {"-l app_class=stream", "", ""},
	{"-l matlab=2", "", ""}, {"-l bigmem=true", "", ""}, {"-l kind=fast", "", ""},
	{"-l select=1:ncpus=8:mem=16gb:ngpus=1", "", ""}, {"-l select=2:ncpus=4:mem=1gb:mpiprocs=2", "", ""},
	{"-l select=2:ncpus=4:mem=1gb+1:ncpus=1", "", ""}, {"-l select=1:ncpus=1+3:ncpus=2:mpiprocs=2:ngpus=1", "", ""},
	{"-l select=2:ncpus=2 -l place=pack", "", ""}, {"-l select=2:ncpus=2 -l place=scatter", "", ""},
	{"-l select=3:ncpus=1:vmem=2gb", "", ""}, {"-l select=1:ncpus=1:bigmem=true+1:ncpus=1", "", ""},
	{"-l nodes=2:ppn=4", "", ""}, {"-l nodes=2:ppn=2+1:ppn=8,mem=3gb", "", ""}, {"-l nodes=1", "", ""},
	{"-l nodes=1:ppn=4:gpus=1", "", ""}, {"-l select=1:ncpus=1 -l place=excl", "", ""},
	{"-l select=2:ncpus=1 -l place=free:group=rack", "", ""},
	{"-l select=2:ncpus=1 -l place=scatter:exclhost:group=arch", "", ""}, {"-l nodes=1#excl", "", ""}, {"-n", "", ""},
	{"-m abe", "", ""}, {"-m n", "", ""}, {"-m a -M ann@x.org,bob@y.org", "", ""}, {"-M ann@x.org", "", ""},
	{"-J 1-3 -m abj", "", ""}, {"-N some.name", "", ""}, {"-p -5", "", ""}, {"-p 1023", "", ""},
	{"-q long", "", ""}, {"-q @n2", "server", ""}, {"-q long@n2", "", ""}, {"-r n", "", ""}, {"-r y", "", ""},
	{"-S /bin/bash", "", ""}, {"-S /bin/zsh@n1,/bin/bash", "", ""}, {"-u ann", "who submits", ""},
	{"-v A=1,B=2", "", ""}, {"-V", "", ""}, {"-z", "", ""}, {"-f", "", ""}, {"-W block=true", "--wait", ""},
	{"-W depend=on:2", "", ""}, {"-W depend=synccount:2", "", ""},
	{"-W depend=afterok:12:13", "ids are those", "DependsOn"}, {"-W depend=beforeany:12,runone:14",
		`"beforeany:ID", "runone:ID"`, "DependsOn"}, {"-W umask=027", "", ""}, {"-W run_count=3", "", ""},
	{"-W sandbox=PRIVATE", "", ""}, {"-W sandbox=HOME", "", ""}, {"-W stagein=in.dat@h:/data/in.dat", "", ""},
	{"-W group_list=users", "", ""}, {"-W stageout=a@h:/b", "outputs = {", "Transfer TransferOutput"},
	{"-W group_list=users@n1", "single machines", ""},
	{"-W interactive=true", "interactive", ""}, {"-J 1-9 -W max_run_subjobs=3", "", ""},
	{"-W create_resv_from_job=true", "reservation", ""}, {"-W release_nodes_on_stageout=true", "no effect", ""},
	{"-W tolerate_node_failures=all", "no effect", ""}, {"-W Priority=7", "", ""}, {"-W Mail_Points=e,Job_Name=x", "",
		""}, {"-W Rerunable=False", "", ""}, {"-W Account_Name=a,umask=077", "", ""},
}

// comparedAttributes are the job attributes that must equal qsub's, with their defaults,
// which may be unset.
var comparedAttributes = map[string]string{
	roost.AttrJobName: "", roost.AttrGroup: "", roost.AttrPriority: "0", roost.AttrQueue: "", roost.AttrOut: "",
	roost.AttrErr: "", roost.AttrJoinOutput: "false", roost.AttrKeepEmptyFiles: "", roost.AttrRemoveOutput: "",
	roost.AttrUmask: "", roost.AttrTransferIn: "", roost.AttrTransferOut: "", roost.AttrRequestCpus: "1",
	roost.AttrRequestMemory: "256", roost.AttrRequestDisk: "0", roost.AttrRequestGpus: "0",
	roost.AttrRequestGpuMem: "0",
	roost.AttrWalltime:      "0", roost.AttrMaxRetries: "0", roost.AttrDependsOn: "", roost.AttrStartAfter: "",
	roost.AttrRerunnable: "true", roost.AttrGangSize: "", roost.AttrMPIGang: "", roost.AttrScatter: "",
	roost.AttrPlacementSet: "", roost.AttrExclusive: "", roost.AttrProcesses: "1",
	roost.AttrMaxRunning: "", roost.AttrArrayIndex: "", roost.AttrHoldOnSubmit: "", roost.AttrAppClass: "",
	roost.AttrLimits: "", roost.AttrCPUTime: "", roost.AttrProcessCPU: "", roost.AttrVirtual: "",
	roost.AttrProcessVirtual: "",
	roost.AttrProcessMemory:  "", roost.AttrFileSize: "", roost.AttrNice: "", roost.AttrRunCount: "",
	roost.AttrMailPoints: "", roost.AttrMailUsers: "", roost.AttrCheckpoint: "true", roost.AttrCheckpointEvery: "0",
	roost.AttrTransfer: `"auto"`, roost.AttrUnixGroup: "", roost.AttrShell: "",
}

// TestSameAsQsub checks that each directive becomes what qsub makes of it, or a comment
// with the reason.
func TestSameAsQsub(t *testing.T) {
	now := time.Date(2030, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, d := range directives {
		script := "#PBS " + d.line + "\ncd $PBS_O_WORKDIR\n./work\n"
		r, err := TranslateFile([]byte(script), SourceOptions{Name: "run.pbs", From: PBS})
		if err != nil {
			t.Fatalf("%s: %v", d.line, err)
		}
		if gotText := strings.Join(strings.Fields(strings.ReplaceAll(r.Text, "\n#", " ")), " "); d.why != "" &&
			!strings.Contains(gotText, d.why) {
			t.Errorf("%s: nothing says %q:\n%s", d.line, d.why, r.Text)
		}
		if d.why == "interactive" {
			continue // a job file is not interactive
		}
		if d.why == "" && r.Lost > 0 {
			t.Errorf("%s: it was not carried over:\n%s", d.line, r.Text)
		}
		made, diags := submit.ParseFile([]byte(r.Text),
			submit.ParseOptions{Filename: "run.hcl", Dir: "/data/ann", Home: "/home/ann", User: "ann", Now: now})
		if diags.HasErrors() {
			t.Errorf("%s: %v\n%s", d.line, diags, r.Text)
			continue
		}
		q, err := qsub.ParseQsub(nil, qsub.QsubCaller{Dir: "/data/ann", Home: "/home/ann", User: "ann", Group: "staff",
			Host: "h", Now: now, Environ: []string{"SHELL=/bin/bash"}, Stdin: func() ([]byte, error) {
				return []byte(script), nil
			}})
		if err != nil {
			if d.why == "" {
				t.Errorf("%s: qsub: %v", d.line, err)
			}
			continue // qsub refuses it, too
		}
		if !strings.Contains(d.line, "-N") && !strings.Contains(d.line, "Job_Name") {
			script = "#PBS -N run\n" + script
			q, _ = qsub.ParseQsub(nil, qsub.QsubCaller{Dir: "/data/ann", Home: "/home/ann", User: "ann", Group: "staff",
				Host: "h", Now: now, Environ: []string{"SHELL=/bin/bash"}, Stdin: func() ([]byte, error) {
					return []byte(script), nil
				}})
		}
		if all := jobDifference(d.line, d.except, made[0], q.Job); len(all) > 0 {
			t.Errorf("%s:\n%s\n%s", d.line, strings.Join(all, "\n"), r.Text)
		}
	}
}

// jobDifference lists the differences between two jobs.
func jobDifference(line, except string, got, want submit.Job) (all []string) {
	addLine := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if got.Count != want.Count || got.Array != want.Array {
		addLine("%d tasks (array: %v), want %d (%v)", got.Count, got.Array, want.Count, want.Array)
	}
	text := func(j submit.Job, name string) string {
		if e, ok := j.Ad.Lookup(name); ok && e.String() != comparedAttributes[name] {
			return e.String()
		}
		return ""
	}
	for name := range comparedAttributes {
		if name == roost.AttrJobName && strings.Contains(line, "Job_Name") {
			continue
		}
		if g, w := text(got, name), text(want, name); g != w && !slices.Contains(strings.Fields(except), name) {
			addLine("%s is %s, want %s", name, g, w)
		}
	}
	if (text(got, roost.AttrRequirements) == "") != (text(want, roost.AttrRequirements) == "") {
		addLine("requirements are %s, want %s", text(got, roost.AttrRequirements), text(want, roost.AttrRequirements))
	}
	for _, c := range want.Columns {
		found := false
		for _, g := range got.Columns {
			if g.Name == c.Name {
				found = c.Name == roost.AttrRequirements || strings.Join(g.Values, " ") == strings.Join(c.Values, " ")
				if !found {
					addLine("%s differs as %v, want %v", c.Name, g.Values, c.Values)
				}
			}
		}
		if !found {
			addLine("%s does not differ between tasks, want %v", c.Name, c.Values)
		}
	}
	slices.Sort(all)
	return all
}
