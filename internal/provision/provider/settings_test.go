package provider

import (
	"strings"
	"testing"
	"time"
)

func TestSettingsCheck(t *testing.T) {
	for text, change := range map[string]func(*Settings){
		"cannot be the name": func(s *Settings) { s.Name = "a b" },
		"there is no kind":   func(s *Settings) { s.Kind = "ec2" },
		"needs one":          func(s *Settings) { s.Walltime = 0 },
		"no time left":       func(s *Settings) { s.Margin = time.Hour },
		"do not fit":         func(s *Settings) { s.NodesEach, s.MaxPilots = 4, 3 },
		"cannot wait":        func(s *Settings) { s.MaxQueued = -1 },
		"nothing would be":   func(s *Settings) { s.MaxNodeHours = 0.5 },
		"is relative":        func(s *Settings) { s.Directory = "pilots" },
		"attributes":         func(s *Settings) { s.Node.Attributes = "[a = ]" },
		"no program":         func(s *Settings) { s.Kind = Command },
	} {
		s := Settings{Name: "c", Kind: Slurm, Walltime: time.Hour}
		change(&s)
		s = s.WithDefaults()
		problems := s.Check()
		if len(problems) == 0 || !strings.Contains(problems[0].Error(), text) {
			t.Errorf("got %v, want %q", problems, text)
		}
	}
}
