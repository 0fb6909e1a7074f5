package getopt

import (
	"fmt"
	"strings"
	"testing"
)

func table() Table {
	return Table{Options: []Option{
		{Name: "array", Letter: 'a', Argument: Required}, {Name: "account", Letter: 'A', Argument: Required},
		{Name: "exclude", Letter: 'x', Argument: Required}, {Name: "exclusive", Argument: Optional},
		{Name: "export", Argument: Required}, {Name: "hold", Letter: 'H'}, {Name: "nice", Argument: Optional},
		{Name: "ntasks-per-node", Argument: Required},
		{Name: "tasks-per-node", Argument: Required, As: "ntasks-per-node"},
		{Name: "workdir", Argument: Required, As: "chdir"}, {Name: "chdir", Letter: 'D', Argument: Required},
		{Name: "wait", Letter: 'W'}, {Letter: 'k', Argument: Optional},
		{Name: "xx-one", As: "xx"}, {Name: "xx-two", As: "xx"},
	}}
}

// TestParse holds what getopt_long of glibc 2.41 does with each of these lines.
func TestParse(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", ""},
		{"--array=0-3 job.sh -H arg", "array=0-3 hold | job.sh arg"},
		{"--array 0-3 -- -H", "array=0-3 | -H"},
		{"-a0-3 -Ha 5", "array=0-3 hold array=5"},
		{"-HW -D/tmp", "hold wait chdir=/tmp"},
		{"-a=5", "array==5"},
		{"--ar=", "array="},
		{"--exclusive --exclusive=user", "exclusive exclusive=user"},
		{"--nice 5", "nice | 5"},
		{"-k -k5", "k k=5"},
		{"--tasks=3 --workdir=/", "ntasks-per-node=3 chdir=/"},
		{"--xx", "xx"},
		{"-", "| -"},
		{"--x", "xx"},
		{"--excl=5", "! option '--excl' is ambiguous; possibilities: '--exclude' '--exclusive'"},
		{"-H --zz=1", "hold ! unrecognized option '--zz'"},
		{"-HZ", "hold ! invalid option -- 'Z'"},
		{"-a", "! option requires an argument -- 'a'"},
		{"--array", "! option '--array' requires an argument"},
		{"--hol=5", "! option '--hold' doesn't allow an argument"},
	} {
		tab := table()
		given, operands, err := tab.Parse(strings.Fields(c.line))
		var words []string
		for _, g := range given {
			word := g.Name
			if g.HasValue {
				word += "=" + g.Value
			}
			words = append(words, word)
		}
		if len(operands) > 0 {
			words = append(words, "|")
			words = append(words, operands...)
		}
		if err != nil {
			words = append(words, "!", err.Error())
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.line, got, c.want)
		}
	}
}

func TestStopAtOperand(t *testing.T) {
	tab := table()
	tab.StopAtOperand = true
	given, operands, err := tab.Parse([]string{"-H", "hostname", "-W", "--no-such"})
	if got := fmt.Sprint(given, operands, err); got != "[{hold  false}] [hostname -W --no-such] <nil>" {
		t.Error(got)
	}
}

func TestMessage(t *testing.T) {
	tab := table()
	_, _, err := tab.Parse([]string{"--zz"})
	want := "sbatch: unrecognized option '--zz'\nTry \"sbatch --help\" for more information\n"
	if got := Message("sbatch", err); got != want {
		t.Errorf("%q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("--array=0-3\x00-H\x00--\x00-a")
	f.Fuzz(func(t *testing.T, line string) {
		tab := table()
		args := strings.Split(line, "\x00")
		given, operands, err := tab.Parse(args)
		if err == nil && len(given) == 0 && len(operands) == 0 && line != "" && line != "--" {
			t.Errorf("%q has vanished", line)
		}
	})
}
