package flows

import (
	"fmt"
	"strings"
	"testing"
)

// TestParseSubmitDAG checks the command line of condor_submit_dag.
func TestParseSubmitDAG(t *testing.T) {
	for line, want := range map[string]string{
		"a.dag":                           "[a.dag] jobs 0 idle 1000 pre 20 post 20 rescue -1",
		"-maxjobs 5 -MaxIdle 7 a b":       "[a b] jobs 5 idle 7 pre 20 post 20 rescue -1",
		"-maxpre 0 -maxpost 3 a":          "[a] jobs 0 idle 1000 pre 0 post 3 rescue -1",
		"-f a":                            "[a] jobs 0 idle 1000 pre 20 post 20 rescue 0",
		"-dorescuefrom 3 -autorescue 0 a": "[a] jobs 0 idle 1000 pre 20 post 20 rescue 3",
		"-autorescue 0 a":                 "[a] jobs 0 idle 1000 pre 20 post 20 rescue 0",
		"-debug 3 -verbose a":             "[a] jobs 0 idle 1000 pre 20 post 20 rescue -1 ignored [-debug -verbose]",
		"":                                "no DAG file is named",
		"-maxjobs":                        "-maxjobs needs a value",
		"-maxjobs x a":                    `-maxjobs: "x" is no number from 0 to 10000000`,
		"-nonsense a":                     "unknown option -nonsense",
	} {
		l, err := parseSubmitDAG(strings.Fields(line))
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%v jobs %d idle %d pre %d post %d rescue %d", l.files, l.limits.Jobs, l.limits.IdleTasks,
				l.limits.Pre, l.limits.Post, l.rescue)
			if len(l.ignored) > 0 {
				got += fmt.Sprintf(" ignored %v", l.ignored)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	if l, err := parseSubmitDAG([]string{"-maxj", "5", "a"}); err != nil || !l.set["max-jobs"] || l.set["max-idle"] {
		t.Errorf("set are %v, %v", l.set, err)
	}
	for _, o := range dagOptions() {
		if len(o.word) < o.least || o.set == nil {
			t.Errorf("option %s", o.word)
		}
		if found, ok := findDAGOption("-" + o.word); !ok || found.word != o.word {
			t.Errorf("-%s is %s", o.word, found.word)
		}
	}
}
