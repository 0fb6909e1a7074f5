package pbs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
)

func caller(script string) Caller {
	return Caller{
		Dir: "/data/ann", Home: "/home/ann", User: "ann", Host: "srv", Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Environ: []string{"PATH=/usr/bin", "SHELL=/bin/bash", "HOME=/home/ann", "COST=5$"},
		Read: func(path string) ([]byte, error) {
			if strings.HasPrefix(path, "/data/ann/") && !strings.Contains(path, "missing") {
				return []byte(script), nil
			}
			return nil, fs.ErrNotExist
		},
		Stdin: func() ([]byte, error) { return []byte(script), nil },
		IsDir: func(path string) bool { return path == "/data/ann/logs" },
		Look:  func(name string) (string, error) { return "/usr/bin/" + name, nil },
	}
}

const hello = "#!/bin/sh\necho hello\n"

func TestQsub(t *testing.T) {
	for _, c := range []struct {
		args, script string
		want         string // "Attr=value" pairs that the ad must hold, one a line; "Env NAME=value"
	}{
		{"run.sh", hello, "JobName=\"run.sh\"\nIwd=\"/home/ann\"\nShell=\"/bin/bash\"\nOut=\"/data/ann/run.sh.o$(JobSeq)\"\nErr=\"/data/ann/run.sh.e$(JobSeq)\"\nEnv PBS_JOBID=$(JobId)\nEnv PBS_O_WORKDIR=/data/ann"},
		{"", hello, "JobName=\"STDIN\""},
		{"-joe -Nx -lnodes=1:ppn=4,mem=1gb run.sh", hello, "JobName=\"x\"\nRequestCpus=4\nRequestMemory=1024\nJoinOutput=true\nOut=\"/data/ann/x.o$(JobSeq)\""},
		{"-j eo run.sh -N y -hz", hello, "JobName=\"y\"\nOut=\"/data/ann/y.e$(JobSeq)\"\nHoldOnSubmit=true"},
		{"-N=\"z\" -l select=1:ncpus=2:mem=954MB:ngpus=1 -l place=pack -l walltime=0:5:0", hello, "JobName=\"z\"\nRequestCpus=2\nRequestMemory=954\nRequestGpus=1\nWalltime=300"},
		{"-l ngpus=2,gpu_mem=10gb", hello, "RequestGpus=2\nRequestGpuMemory=10240"},
		{"-c n", hello, "WantCheckpoint=false"},
		{"-c s", hello, "WantCheckpoint=true\nCheckpointInterval=-1"},
		{"-c c", hello, "WantCheckpoint=true\nCheckpointInterval=0"},
		{"-c w=5", hello, "WantCheckpoint=true\nCheckpointInterval=300"},
		{"", "#!/bin/sh\n#PBS -c c=10\necho\n", "CheckpointInterval=600"},
		{"-c c=0", hello, "error qsub: illegal -c value|2"},
		{"-c n=5", hello, "error qsub: illegal -c value|2"},
		{"-c x", hello, "error qsub: illegal -c value|2"},
		{"-l gpu_mem=1537kb", hello, "RequestGpus=1\nRequestGpuMemory=2"},
		{"-l select=1:ncpus=2:ngpus=1:gpu_mem=10gb -l app_class=stream", hello, "RequestCpus=2\nRequestGpus=1\nRequestGpuMemory=10240\nAppClass=\"stream\""},
		{"-l nodes=1:ppn=2:gpus=1:gpu_mem=4gb", hello, "RequestCpus=2\nRequestGpus=1\nRequestGpuMemory=4096"},
		{"-l gpu_mem=lots", hello, "error qsub: Illegal attribute or resource value Resource_List.gpu_mem: gpu_mem is memory of each GPU, as in gpu_mem=10gb|166"},
		{"-l gpu_mem=-1gb", hello, "error qsub: Illegal attribute or resource value Resource_List.gpu_mem|166"},
		{"-l gpu_mem=0", hello, "error qsub: Illegal attribute or resource value Resource_List.gpu_mem|166"},
		{"-l gpu_mem=9999999pb", hello, "error qsub: Illegal attribute or resource value Resource_List.gpu_mem|166"},
		{"-l ngpus=0,gpu_mem=1gb", hello, "error qsub: Illegal attribute or resource value Resource_List.gpu_mem: it is memory of each GPU, and ngpus=0 asks for none|166"},
		{"-l ngpus=-1", hello, "error qsub: Illegal attribute or resource value Resource_List.ngpus|166"},
		{"-l app_class=fast", hello, "error qsub: Illegal attribute or resource value Resource_List.app_class: app_class is batch or stream|166"},
		{"-l ncpus=2:mem=1mb", hello, "RequestCpus=2\nRequestMemory=1"},
		{"-J 1-9:2%3", hello, "TaskCount=5\nArrayIndexes=\"1:2\"\nMaxRunning=3\nEnv PBS_ARRAY_INDEX=$(ArrayIndex)\nEnv PBS_JOBID=$(JobSeq)[$(ArrayIndex)].srv\nEnv PBS_ARRAY_ID=$(JobSeq)[].srv\nOut=\"/data/ann/STDIN.o$(JobSeq).$(ArrayIndex)\""},
		{"-J 0-9", hello, "TaskCount=10\nEnv PBS_ARRAY_INDEX=$(TaskIndex)"},
		{"-t 1,5,7-9%2", hello, "TaskCount=5\nMaxRunning=2"},
		{"-t 3", hello, "TaskCount=1\nEnv PBS_ARRAYID=$(ArrayIndex)"},
		{"-o logs -e logs/", hello, "Out=\"/data/ann/logs/$(JobId).OU\"\nErr=\"/data/ann/logs/$(JobId).ER\""},
		{"-o srv:/tmp/a.$PBS_JOBID.$x", hello, "Out=\"/tmp/a.$(JobId).$$x\""},
		{"-k oe", hello, "Out=\"/home/ann/STDIN.o$(JobSeq)\""},
		{"-v A,COST,B=1 ", hello, "error qsub: cannot send environment with the job: A is not set|1"},
		{"-v COST,B='1,2',C=x", hello, "Env COST=5$$\nEnv B=1,2\nEnv C=x"},
		{"-V -v  ", hello, "error qsub: option requires an argument -- 'v'|2"},
		{"-V", hello, "Env COST=5$$"},
		{"-W depend=afterok:1.srv:2,afterany:3 -W block=true,umask=022", hello, "DependsOn={ \"afterok:1.srv\",\"afterok:2\",\"afterany:3\" }\nUmask=18"},
		{"-a 1300", hello, "DeferralTime=1795266000"}, {"-a 202612010800.30", hello, "DeferralTime=1796112030"},
		{"-p -5 -q fast@srv -A phys -r n -S /bin/ksh -d /tmp", hello, "JobPrio=-5\nQueue=\"fast\"\nAccountingGroup=\"phys\"\nRerunnable=false\nShell=\"/bin/ksh\"\nIwd=\"/tmp\""},
		{"-- sleep 10", "", "Cmd=\"/usr/bin/sleep\"\nArguments={ \"10\" }\nJobName=\"STDIN\""},
		{"run.sh", "#!/bin/sh\n#PBS -N fromfile -l ncpus=3\n  #PBS -l mem=2gb \\\n -p 7\n# comment \\\n\necho\n#PBS -N late\n", "JobName=\"fromfile\"\nRequestCpus=3\nRequestMemory=2048\nJobPrio=7"},
		{"-N line -l ncpus=1 run.sh", "#PBS -N fromfile -l ncpus=3,mem=2gb\necho\n", "JobName=\"line\"\nRequestCpus=1\nRequestMemory=2048"},
		{"-C #X run.sh", "#X -N a\n#PBS -N b\necho\n", "JobName=\"a\""},
		{"run.sh", "echo\r\n", "error qsub: script contains cr, lf|1"},
		{"run.sh", "#PBS -Q\necho\n", "error qsub: directive error: -Q|1"},
		{"missing.sh", "", "error qsub: script file missing.sh cannot be read: file does not exist|8"},
		{"-N a&b", hello, "error qsub: illegal -N value|2"}, {"-J 1-1", hello, "error qsub: illegal -J value|2"}, {"-J 5-1", hello, "error qsub: illegal -J value|2"},
		{"-J 1,2", hello, "error qsub: illegal -J value|2"}, {"-j xx", hello, "error qsub: illegal -j value|2"}, {"-p 5000", hello, "error qsub: illegal -p value|2"},
		{"-a soon", hello, "error qsub: illegal -a value|2"}, {"-W nonsense", hello, "error qsub: illegal -W value|2"}, {"-r x", hello, "error qsub: illegal -r value|2"},
		{"-l mem=lots", hello, "error qsub: Illegal attribute or resource value Resource_List.mem|166"}, {"-l wings=2", hello, "error qsub: Unknown resource: wings|187"},
		{"-l nodes=2:ppn=4", hello, "error qsub: a job on more than one node is not supported yet: ask for nodes=1|166"},
		{"-I", hello, "error qsub: interactive jobs are not supported yet|2"}, {"-J 0-3 -r n", hello, "error qsub: cannot submit non-rerunable Array Job|2"},
		{"--", hello, "error usage:|2"}, {"f --", hello, "error usage:|2"}, {"f -- sleep 1", hello, "error usage:|2"}, {"a b", hello, "error usage:|2"}, {"-Z", hello, "error qsub: invalid option -- 'Z'|2"},
		{"", " \n", "error qsub: Job has no script|1"},
	} {
		got, err := ParseQsub(strings.Fields(c.args), caller(c.script))
		if want, ok := strings.CutPrefix(c.want, "error "); ok {
			text, code, _ := strings.Cut(want, "|")
			var e *Error
			if !errors.As(err, &e) || !strings.HasPrefix(e.Text, text) || fmt.Sprint(e.Code) != code {
				t.Errorf("qsub %s: got %v, want %s", c.args, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("qsub %s: %v", c.args, err)
			continue
		}
		env, _ := got.Job.Ad.Strings("Environment")
		for _, line := range strings.Split(c.want, "\n") {
			if name, ok := strings.CutPrefix(line, "Env "); ok {
				if !strings.Contains("\n"+strings.Join(env, "\n")+"\n", "\n"+name+"\n") {
					t.Errorf("qsub %s: no %s in %q", c.args, name, env)
				}
				continue
			}
			name, want, _ := strings.Cut(line, "=")
			if e, _ := got.Job.Ad.Lookup(name); e.String() != want {
				t.Errorf("qsub %s: %s is %s, want %s", c.args, name, e, want)
			}
		}
		for _, column := range got.Job.Columns {
			if len(column.Values) != got.Job.Count {
				t.Errorf("qsub %s: column %s has %d values of %d", c.args, column.Name, len(column.Values), got.Job.Count)
			}
		}
	}
}

func TestStoredScript(t *testing.T) {
	script := "#!/bin/sh\n#PBS -m \\\nn\n# c \\\necho $HOME $(x)\n"
	got, err := ParseQsub([]string{"f"}, caller(script))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := got.Job.Ad.Str("Script"); text != "#!/bin/sh\n#PBS -m n\n# c \\\necho $HOME $(x)\n" {
		t.Fatalf("script %q", text)
	}
}

func FuzzQsub(f *testing.F) {
	f.Add("-joe\n-lnodes=1:ppn=2\nrun.sh", "#PBS -J 1-3 -v A=1\necho\n")
	f.Add("-t1,2-3%4\n-Wdepend=afterok:1\n-", "#PBS -l select=1:ncpus=2\n")
	f.Fuzz(func(t *testing.T, args, script string) {
		if strings.Contains(args, "-t") && len(args) > 40 {
			return // large arrays take time, not correctness
		}
		got, err := ParseQsub(strings.Split(args, "\n"), caller(script))
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Code == 0 || e.Text == "") {
			t.Fatalf("error %#v", err)
		}
		if err == nil && (got.Job.Ad == nil || got.Job.Count < 1) {
			t.Fatalf("job %+v", got.Job)
		}
	})
}
