package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var updatesSlurm = flag.Bool("update-slurm", false,
	"write what Roost prints otherwise than Slurm to testdata/slurm/cases.txt")

// slurmCase is a command line with what Slurm answers, and with what Roost does where
// that differs.
type slurmCase struct {
	comment       []string // the lines before it
	command       string
	isCompared    bool // false: it only prepares the next ones
	slurm, roost  []string
	hasDifference bool
	reason        string // why Roost differs
}

// TestSlurmCases runs command lines of Slurm against a pool. It compares output, errors
// and exit status with those of Slurm 24.11.5, which are in testdata/slurm/cases.txt. The
// file says where Roost differs, and why. A line of an error may say more than Slurm's.
//
// ROOST_SLURM_SHELL is a command that runs a shell where a real Slurm is. Then the file
// gets its answers.
func TestSlurmCases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	file := filepath.Join("testdata", "slurm", "cases.txt")
	cases := readSlurmCases(t, file)
	if shell := os.Getenv("ROOST_SLURM_SHELL"); shell != "" {
		s := startSlurmShell(t, exec.Command("sh", "-c", "exec "+shell), "alice", "slurm0")
		defer writeSlurmCases(t, file, cases)
		for _, c := range cases {
			c.slurm = s.answer(c)
		}
		return
	}
	if *updatesSlurm {
		defer writeSlurmCases(t, file, cases)
	}
	s := startSlurmShell(t, roostShell(t), "root", "n1")
	for _, c := range cases {
		got, want := s.answer(c), c.slurm
		isEqual := sameAnswer(got, want)
		if c.hasDifference && !*updatesSlurm {
			if isEqual {
				t.Errorf("%s\nRoost answers as Slurm does: it is said to differ, because %s", c.command, c.reason)
			}
			want = c.roost
			isEqual = sameAnswer(got, want)
		}
		if *updatesSlurm {
			c.hasDifference, c.roost = !isEqual, got
			continue
		}
		if c.isCompared && !isEqual {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", c.command, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if c.hasDifference && (c.reason == "" || c.reason == "?") {
			t.Errorf("%s\nthere is no reason why Roost differs", c.command)
		}
	}
}

// sameAnswer reports whether an answer is that of Slurm. Roost's errors may end with a
// colon and more words.
func sameAnswer(got, slurm []string) bool {
	return slices.EqualFunc(got, slurm, func(a, b string) bool {
		return a == b || strings.HasPrefix(b, "2 ") && strings.HasPrefix(a, b+": ")
	})
}

// readSlurmCases reads a file of cases.
func readSlurmCases(t *testing.T, file string) (cases []*slurmCase) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var comment []string
	var c *slurmCase
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "! "):
			c = &slurmCase{comment: comment, command: line[2:], isCompared: line[0] == '$'}
			cases, comment = append(cases, c), nil
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "== "):
			comment = append(comment, line)
		case strings.HasPrefix(line, "~ "):
			c.hasDifference, c.reason = true, line[2:]
		case c.hasDifference:
			c.roost = append(c.roost, line)
		default:
			c.slurm = append(c.slurm, line)
		}
	}
	return cases
}

// writeSlurmCases writes that file.
func writeSlurmCases(t *testing.T, file string, cases []*slurmCase) {
	t.Helper()
	var b strings.Builder
	for _, c := range cases {
		for _, line := range c.comment {
			fmt.Fprintln(&b, line)
		}
		if !c.isCompared {
			fmt.Fprintln(&b, "! "+c.command)
			continue
		}
		fmt.Fprintln(&b, "$ "+c.command)
		for _, line := range c.slurm {
			fmt.Fprintln(&b, line)
		}
		if !c.hasDifference {
			continue
		}
		if c.reason == "" {
			c.reason = "?"
		}
		fmt.Fprintln(&b, "~ "+c.reason)
		for _, line := range c.roost {
			fmt.Fprintln(&b, line)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// slurmShell is a shell that runs one command after the other.
type slurmShell struct {
	t     *testing.T
	in    io.Writer
	out   chan string // lines
	masks []mask
	ids   map[string]string // of variables of the shell
}

// mask puts a word in place of what differs between two runs.
type mask struct {
	of *regexp.Regexp
	by string
}

// roostShell is a shell beside a new pool of one node with 16 CPUs.
func roostShell(t *testing.T) *exec.Cmd {
	t.Helper()
	bin, program := t.TempDir(), program(t)
	for _, name := range []string{"squeue", "scontrol", "sacct", "sinfo", "srun", "sbatch", "scancel", "salloc",
		"sacctmgr", "sshare", "sprio", "sstat", "sbcast", "sattach"} {
		to := program + "-q"
		if slices.Contains([]string{"salloc", "sbcast", "sattach"}, name) {
			to = program
		}
		if err := os.Symlink(to, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	p := startPool(t, PoolOptions{Nodes: 1, CPUs: 16})
	cmd := exec.Command("bash")
	cmd.Dir = t.TempDir()
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "SLURM_") || strings.HasPrefix(pair, "SBATCH_")
	}), "PATH="+bin+":"+os.Getenv("PATH"), "ROOST_DIR="+p.Dir)
	return cmd
}

// startSlurmShell starts a shell in an empty directory.
func startSlurmShell(t *testing.T, cmd *exec.Cmd, userName, node string) *slurmShell {
	t.Helper()
	if me, err := user.Current(); err == nil && userName == "root" {
		userName = me.Username
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	s := &slurmShell{t: t, in: in, out: make(chan string, 100), ids: map[string]string{}}
	go func() {
		defer close(s.out)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			s.out <- lines.Text()
		}
	}()
	host, _ := os.Hostname()
	s.send(`cd "$(mktemp -d)" && mkdir work .answers && cd work && export TZ=UTC LC_ALL=C && pwd; umask 022`)
	dir := <-s.out
	for _, m := range [...][2]string{
		{regexp.QuoteMeta(dir), "<dir>"},
		{`(?:^|\b)(` + regexp.QuoteMeta(node) + `|` + regexp.QuoteMeta(host) + `)\b`, "<node>"},
		{`\b` + userName + `\b`, "<user>"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`, "<time>"},
		{`(^|[ |])0:[0-5]\d\b`, "$1<run>"},
		{`slurm-wlm 24`, "slurm 24"},
		{`((?:after|before)[a-z]*:)\d+`, "$1<id>"},
		{`((?i:batch job|job|allocation|StepId=|JobId=|job_id=) ?)[1-9]\d*\b`, "$1<id>"},
		{`slurm-\d+\.out`, "slurm-<id>.out"},
		{`\bbench\b`, "<cluster>"},
	} {
		s.masks = append(s.masks, mask{regexp.MustCompile(m[0]), m[1]})
	}
	return s
}

func (s *slurmShell) send(text string) {
	if _, err := io.WriteString(s.in, text+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// endOfAnswer is a line that no command prints.
const endOfAnswer = "\x01end of answer"

// shellVariable is a reference to a variable of the shell.
var shellVariable = regexp.MustCompile(`\$\{?([A-Z])\b`)

// answer runs a command line and returns its output, its errors, and its status if that
// is not 0. The values of the variables that it mentions are masked.
func (s *slurmShell) answer(c *slurmCase) (lines []string) {
	s.t.Helper()
	s.send(`{ ` + c.command + `
} >../.answers/out 2>../.answers/err </dev/null; echo "[$?]" >../.answers/status`)
	s.send(`sed 's/^/  /;$a\' ../.answers/out; sed 's/^/2 /;$a\' ../.answers/err; grep -vx '\[0\]' ../.answers/status; ` +
		`for v in A B C D H L R S Y; do echo "$v=${!v}"; done; printf '\n` + "\\001end of answer" + `\n'`)
	timer := time.NewTimer(2 * time.Minute)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-s.out:
			if !ok {
				s.t.Fatalf("%s\nthe shell has ended", c.command)
			}
			if line == endOfAnswer {
				return s.masked(c, lines)
			}
			lines = append(lines, line)
		case <-timer.C:
			s.t.Fatalf("%s\nno answer after two minutes:\n%s", c.command, strings.Join(lines, "\n"))
		}
	}
}

// blanks are those that fill a column whose value was masked.
var blanks = regexp.MustCompile(`(\S) {2,}`)

// waitMessage is a line that is there when machines are not free at once.
var waitMessage = regexp.MustCompile(`^2 (srun|salloc): (job <id> (queued|has been)|Pending job)`)

// masked puts words in place of what differs between two runs.
func (s *slurmShell) masked(c *slurmCase, lines []string) (answer []string) {
	for _, line := range lines {
		if len(line) > 1 && line[1] == '=' {
			s.ids[line[:1]] = line[2:]
		}
	}
	for _, line := range lines {
		if line == "" || line[1:] == "" || line[1] == '=' {
			continue
		}
		before := line
		for _, m := range shellVariable.FindAllStringSubmatch(c.command, -1) {
			if id := s.ids[m[1]]; id != "" {
				line = regexp.MustCompile(`\b`+id+`(\b|_)`).ReplaceAllString(line, "<"+m[1]+">$1")
			}
		}
		for _, m := range s.masks {
			if m.by == "<node>" && strings.Contains(c.command, "show host") {
				continue // those are no machines
			}
			line = m.of.ReplaceAllString(line, m.by)
		}
		if isNumber := regexp.MustCompile(`^  \d+$`); strings.Contains(c.command, "--parsable") && isNumber.MatchString(line) {
			line = "  <id>"
		}
		if line != before {
			line = blanks.ReplaceAllString(line[:2]+strings.TrimLeft(line[2:], " "), "$1 ")
		}
		if !waitMessage.MatchString(line) {
			answer = append(answer, line)
		}
	}
	return answer
}
