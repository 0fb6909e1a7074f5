package policy

import (
	"strings"
	"testing"
	"time"
)

func TestExamine(t *testing.T) {
	for _, tt := range []struct{ setting, src, want string }{
		{"start", "KeyboardIdle > 900 && TARGET.Walltime < 3600", ""},
		{"start", "keyboardidle > 900 && my.LoadAvg < 1", ""},
		{"start", "KeyboardIdle < 0", "error KeyboardIdle: never less than 0"},
		{"start", "ClockMin >= 1440", "error ClockMin: from 0 to 1439"},
		{"start", "ClockDay is 7", "error ClockDay: from 0 to 6"},
		{"start", "LoadAvg > 2 && MY.Memory > 3 && LoadAvg < 1", "error LoadAvg: LoadAvg < 1 contradicts LoadAvg > 2"},
		{"start", "LoadAvg > 2 && TARGET.LoadAvg < 1", "doubt LoadAvg"}, // another machine's
		{"start", "LoadAvg > 2 || LoadAvg < 1", ""},
		{"start", "5 < 3", "error : it is never true"},
		{"start", "undefined", "error : it is never true"},
		{"start", "time() > 3", ""},
		{"start", "KeyboardIdle > 2*60 && KeyboardIdle <= 120", "error KeyboardIdle: contradicts"},
		{"start", "KeyboardIdle >= 120 && KeyboardIdle <= 120", ""},
		{"start", `State == "Claimd"`, "error State: one of"},
		{"start", `State != "Claimd"`, ""},
		{"continue", "false", "error : it is never true"},
		{"suspend", "false", ""},
		{"suspend", "1 == 1", "error : it is always true"},
		{"preempt", "true", "error : it is always true"},
		{"kill", "true", ""},
		{"start", "MY.Keybordidle > 3", "error Keybordidle: did you mean KeyboardIdle?"},
		{"start", "MY.HasMatlab", ""},
		{"start", "MY.HasMatlap", "error HasMatlap: did you mean HasMatlab?"},
		{"start", "TARGET.WaltIme > 3", "doubt WaltIme: did you mean Walltime?"},
		{"start", "Wallltime > 3", "doubt Wallltime: did you mean Walltime?"},
		{"rank", "MY.Nonsense + 1", "error Nonsense: no attribute"},
		{"rank", "0", ""},
		{"start", "KeyboardIdle >", ""}, // reported elsewhere
	} {
		var got []string
		for _, f := range LintExpression(tt.setting, tt.src, []string{"HasMatlab"}) {
			kind := "error "
			if f.MaybeIntended {
				kind = "doubt "
			}
			got = append(got, kind+f.Word+": "+f.Cause+" "+f.Cure)
			if f.Cure == "" {
				t.Errorf("%s = %s: no cure for %s", tt.setting, tt.src, f.Cause)
			}
		}
		head, tail, _ := strings.Cut(tt.want, ": ")
		if text := strings.Join(got, "\n"); len(got) > 1 || (tt.want == "") != (text == "") ||
			!strings.HasPrefix(text, head) || !strings.Contains(text, tail) {
			t.Errorf("%s = %s:\ngot  %s\nwant %s", tt.setting, tt.src, text, tt.want)
		}
	}
}

// TestPresetsAreSound checks the presets with LintExpression.
func TestPresetsAreSound(t *testing.T) {
	for _, p := range presets() {
		for setting, src := range map[string]string{"start": p.start, "suspend": p.suspend, "continue": p.continue_,
			"preempt": p.preempt, "kill": p.kill} {
			if found := LintExpression(setting, src, nil); len(found) > 0 {
				t.Errorf("%s: %s: %+v", p.name, setting, found)
			}
		}
	}
}

// TestEveryNameIsKnown checks that the lint knows every attribute that the policy sees.
func TestEveryNameIsKnown(t *testing.T) {
	p, _ := PresetPolicy("desktop")
	c := New(PolicyOptions{Policy: p, Name: "n1"})
	c.Observe(time.Hour, time.Unix(1.7e9, 0), GuardObservations{})
	c.SetClaims(time.Hour, []PolicyClaim{{ID: 1, Running: true, AttemptStarted: time.Hour}})
	c.Todo(time.Hour)
	if _, ok := c.machineAd.Lookup("JobStart"); !ok {
		t.Error("a claim on which a task runs has no JobStart")
	}
	for name := range c.machineAd.All() {
		if !containsName(machineNames, name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range guardAttributes {
		if _, ok := c.machineAd.Lookup(name); !ok {
			t.Errorf("%s is the guard's to know, and is not there when it has spoken", name)
		}
	}
}
