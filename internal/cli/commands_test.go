package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// TestCommands holds what commands print, which the golden files show; -update writes
// them.
func TestCommands(t *testing.T) {
	for _, group := range []struct {
		file  string
		lines []string
	}{
		{"jobs", []string{"roost jobs", "roost jobs --all --history", "roost jobs 63", "roost jobs 63[0] 63[1]",
			"roost ls -tn5 63", "roost jobs 99", "roost jobs --state failed", "roost jobs -s failt",
			"roost jobs --json 64", "roost jobs --json 63[1]"}},
		{"show", []string{"roost show 61", "roost show --json 61", "roost show 63", "roost why 64",
			"roost why --json last", "roost history", "roost history --since 1h", "roost history --since soon",
			"roost history --json", "roost cron", "roost cron --all --json"}},
		{"change", []string{"roost hold 63", "roost release last", "roost rm 63 61", "roost rm 99",
			"roost retry --json 61", "roost rm"}},
		{"pool", []string{"roost nodes", "roost nodes --gpus", "roost nodes --units", "roost nodes --json",
			"roost ads -a Name,Cpus", "roost ads --json --attributes name"}},
		{"usage", []string{"roost", "roost jbos", "roost help wait", "roost jobs --jsno", "roost jobs -Z",
			"roost wait --timeout", "roost wait --timeout soon 3", "roost show 1 2", "roost --colour jobs",
			"roost --color maybe jobs", "roost completion tcsh"}},
		{"qstat", []string{"qstat", "qstat -x -t", "qstat -t", "qstat 63", "qstat 62.pool -f", "qstat -f 63",
			"qstat -f 63[1]", "qstat -fx 61", "qstat -fw 62", "qstat 61", "qstat 999.pool", "qstat 62 999 61",
			"qstat 12x", "qstat -Z", "qstat -w -u bob,eve",
			"qstat -s", "qstat -xs -1 61", "qstat -sw 64", "roost qstat 62@pool", "qstat -a", "qstat -ans1",
			"qstat -an", "qstat -i", "qstat -r", "qstat -H", "qstat -T", "qstat -aG", "qstat -aM", "qstat -J",
			"qstat -p", "qstat -pxt", "qstat -E 62 64",
			"qstat -f -F json 62 61 -x", "qstat -fFjson 999", "qstat -f -F dsv 62", "qstat -f -F dsv -D ; 62",
			"qstat -f -F json -a", "qstat -a -i", "qstat -Q", "qstat -Q nope", "qstat -Qf", "qstat -Qf -F json",
			"qstat -q", "qstat -B", "qstat -Bf", "qstat -Bf -F dsv",
			"qstat express", "qstat nope", "qstat @pool", "qstat a/b", "qstat -E batch", "qstat 62\x01",
			"qstat 62\x0163", "qstat -f 62.pool/x", "PBS_DEFAULT=foo.example.org qstat",
			"PBS_DEFAULT=foo.example.org:15001 qstat 62.pool", "PBS_DEFAULT=pool:15001 qstat 62",
			"PBS_SERVER=pool.example.org qstat 62"}},
		{"torque", []string{"ROOST_DIALECT=torque qstat", "ROOST_DIALECT=torque qstat -c",
			"ROOST_DIALECT=torque qstat -t 63", "ROOST_DIALECT=torque qstat -x 62 61",
			"ROOST_DIALECT=torque qstat -f -x 999", "ROOST_DIALECT=torque qstat -xu nobody",
			"ROOST_DIALECT=torque qstat -f -1 61", "ROOST_DIALECT=torque qstat -f 63",
			"ROOST_DIALECT=torque qstat -an1", "ROOST_DIALECT=torque qstat -r -G",
			"ROOST_DIALECT=torque qstat -f -F json -x 61", "ROOST_DIALECT=torque pbsnodes",
			"ROOST_DIALECT=torque pbsnodes -x n2", "ROOST_DIALECT=torque pbsnodes -l free",
			"ROOST_DIALECT=torque pbsnodes -o -N fan n2", "ROOST_DIALECT=torque pbsnodes -A dust n2",
			"ROOST_DIALECT=torque pbsnodes -l", "ROOST_DIALECT=torque pbsnodes -nl n2",
			"ROOST_DIALECT=torque pbsnodes -c n2", "ROOST_DIALECT=torque pbsnodes -o",
			"ROOST_DIALECT=torque pbsnodes --version", "pbsnodes -x n2", "ROOST_DIALECT=torque qdel 99",
			"ROOST_DIALECT=Torque qstat", "qstat -lceR",
			"ROOST_DIALECT=torque qstat -r", "ROOST_DIALECT=torque qstat -u ann", "ROOST_DIALECT=torque qselect",
			"ROOST_DIALECT=torque qselect -s R", "ROOST_DIALECT=torque qselect -u ann -s EHRT",
			"ROOST_DIALECT=torque qselect -s QC", "ROOST_DIALECT=torque qselect -J",
			"ROOST_DIALECT=torque qselect -s B"}},
		{"qdel", []string{"qdel 63[]", "qdel 999.pool 62", "qdel 61", "qdel -x 61", "qdel -W force 62", "qdel -Wfoo 62",
			"qdel", "qdel @pool", "qhold -h u 62", "qhold -h x 62", "qrls 62 99", "qdel 62.pool\x01",
			"qdel \x0162.pool\x01 9\x019", "qdel 6\x1b[2J", "qrls 62/x", "qorder 62\x01 x", "qrun -a 62",
			"qrun -a -H (n1)+n2 62 61 999", "qrun -H n1:ncpus=2 62", "qrun -H - 62", "qrun -H n1++n2 62", "qrun",
			"qrun -a 6x", "pbs_release_nodes -j 62 n2 n3", "pbs_release_nodes -j 62 -k 2", "pbs_release_nodes -a -k 1",
			"pbs_release_nodes -k 1 n1", "pbs_release_nodes -j 62 -k some", "pbs_release_nodes -j 62",
			"pbs_release_nodes -j 6x -a", "pbs_release_nodes -a", "pbs_release_nodes -j 999 -a", "tracejob 6\x012",
			"PBS_SERVER=foo qdel 62", "PBS_SERVER=foo qdel 62@pool",
			"PBS_DEFAULT=foo qsub -- /bin/true", "PBS_DEFAULT=foo qsub --version"}},
		{"qselect", []string{"qselect", "qselect -x", "qselect -H -u ann", "qselect -x -J -T", "qselect -s Q",
			"qselect -u nobody", "qselect -l wings=2", "qselect -p high", "qselect 62", "qselect -Z", "qselect -q a@b",
			"qselect -q @pool", "qselect -N " + strings.Repeat("n", 231), "qselect -u " + strings.Repeat("u", 257)}},
		{"pbsnodes", []string{"pbsnodes -a", "pbsnodes n2 n9", "pbsnodes -aSj", "pbsnodes -aS", "pbsnodes -SjL n10",
			"pbsnodes -aSj -F json", "pbsnodes -F json n9", "pbsnodes -a -F dsv -D ;", "pbsnodes -l", "pbsnodes",
			"pbsnodes -Z", "pbsnodes -o",
			"pbsnodes -o -C fan n2", "pbsnodes -l", "pbsnodes -C heat n2", "pbsnodes -l", "pbsnodes -aS",
			"pbsnodes -r n2", "pbsnodes -l", "pbsnodes -C dust n2", "pbsnodes -C dust n99", "pbsnodes -l",
			"pbsnodes -S n2", "pbsnodes n2", "ROOST_DIALECT=torque pbsnodes -A fan n2", "roost comment",
			"roost nodes --json", "pbsnodes -o -C heat n2", "pbsnodes -l", "pbsnodes -r n2", "roost comment n2 ''",
			"roost comment", "roost comment n2", "roost comment n99 x", "pbsnodes -o n99", "pbsnodes -q -o n99",
			"pbsnodes --version"}},
		{"tracejob", []string{"tracejob 61", "tracejob -n 3 61", "tracejob -n 3 -alm 61", "tracejob -n 3 -s -v 61.pool",
			"tracejob -n 3 -w 60 -f job_usage 61", "tracejob 64 -l", "tracejob 64", "tracejob -n 5 999", "tracejob",
			"tracejob -n soon 61", "tracejob -f x 61"}},
		{"reservations", []string{"pbs_rstat", "pbs_rsub -R 1300 -E 1500 -l select=2:ncpus=4:mem=2gb -N class -I 5",
			"pbs_rsub -R 1400 -D 1:00:00 -lncpus=3 -mn", "pbs_rsub -R 1400 -D 1:00:00 -l select=1:host=n2",
			"pbs_rsub -R 1500 -D 1:00:00 -l select=1:host=n2 -U +daemon@pool,-bin",
			"pbs_rsub -R 1530 -D 600 -l select=1:host=n2", "pbs_rsub -E 1530 -D 10 -l ncpus=10,mem=1tb",
			"pbs_rsub -E 03021600 -D 900", "pbs_rsub -R 1300", "pbs_rsub -R 1300 -E 1200x",
			"pbs_rsub -R 1300 -E 1400 -l select=1:wings=2", "pbs_rsub -R 1300 -E 1400 -U nobody-of-that-name",
			"pbs_rsub -R 1300 -E 1400 -r FREQ=DAILY", "pbs_rsub -R 1300 -E 1400 -ma", "pbs_rsub --hosts n1",
			"pbs_rsub -R 1300 -E 1400 x", "pbs_rsub -Z",
			"roost reservation set late --users root --nodes n7 --force --from 2026-02-01T00:00:00Z --until " +
				"2026-03-01T14:00:00Z", "pbs_rstat", "pbs_rstat -f R1 R2.pool", "pbs_rstat -B R9 late",
			"pbs_rstat -SB R1 R1/x", "pbs_rstat -Z", "qstat -Q", "qstat -Qf R1", "qstat R1", "qstat R9",
			"qselect -q R1", "pbs_ralter -E 1600 R1", "pbs_ralter -l ncpus=2 -N lecture R2.pool",
			"pbs_ralter -U daemon -D 7200 R1", "pbs_ralter -l ncpus=90 R1", "pbs_ralter -R 1100 R1", "pbs_ralter R1",
			"pbs_ralter -E 1600 R9",
			"pbs_rstat -F R1 R2", "pbs_rdel R1 R9 R2@pool", "pbs_rdel", "pbs_rstat -S",
			"roost reservation rm --jobs nothing", "roost reservation rm --jobs late", "roost reservation"}},
		{"printjob", []string{"printjob 62", "printjob -a 61 63[1]", "printjob -s 62", "printjob 99 12x", "printjob",
			"printjob -as 62", "pbs_hostn 127.0.0.1", "pbs_hostn a..b", "pbs_hostn", "pbs_attach -j 62",
			"pbs_attach -p 7", "pbs_attach -m 7 -j 62 ls", "pbs_attach true", "pbs_attach -j x true",
			"PBS_JOBID=62.pool pbs_attach echo here", "PBS_JOBID=62.pool pbs_attach -j 62.pool -- false",
			"PBS_JOBID=62.pool pbs_attach /no/such"}},
		{"words", []string{"roost words -- his", "roost words -- jobs --st", "roost words -- jobs --state f",
			"roost words -- wait 6", "roost words -- submit ''"}},
	} {
		t.Run(group.file, func(t *testing.T) {
			dir := clitest.SampleJobs().Serve(t)
			var b strings.Builder
			for _, line := range group.lines {
				a, stdout, stderr := newFullApp(t, dir)
				args := strings.Fields(strings.ReplaceAll(line, "''", "\x00"))
				for strings.Contains(args[0], "=") { // a variable of the environment
					a.Env, args = append(a.Env, args[0]), args[1:]
				}
				for i := range args {
					args[i] = strings.NewReplacer("\x00", "", "\x01", " \n").Replace(args[i])
				}
				code := a.Run(t.Context(), args)
				fmt.Fprintf(&b, "$ %s\n%s", line, stdout)
				for _, l := range strings.SplitAfter(stderr.String(), "\n") {
					if l != "" {
						b.WriteString("! " + l)
					}
				}
				if code != 0 {
					fmt.Fprintf(&b, "[exit status %d]\n", code)
				}
				b.WriteString("\n")
			}
			text := strings.ReplaceAll(b.String(), "Users = "+frame.LoginName(), "Users = me")
			for _, more := range []string{"", ",daemon"} { // in a column of pbs_rstat
				text = strings.ReplaceAll(text, fmt.Sprintf(" %-8.8s CO ", frame.LoginName()+more),
					fmt.Sprintf(" %-8.8s CO ", "me"+more))
			}
			clitest.CompareGolden(t, group.file, strings.ReplaceAll(text, dir, "/pool"))
		})
	}
}
