package claim

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSecretVariables checks which variables of the environment an attempt gets from its
// secrets. They replace others of the same name.
func TestSecretVariables(t *testing.T) {
	attempt := func(variable, text string) *Attempt {
		return &Attempt{
			program: &wire.Program{Secrets: []string{"tls", "db"}, SecretVariables: []string{"", variable}},
			secrets: []*wire.SecretText{{Name: "db", Text: []byte(text), Version: 3},
				{Name: "tls", Text: []byte("key")}},
		}
	}
	files, variables, err := attempt("DB", "old\n").takeSecrets()
	if err != nil || len(files) != 2 || !slices.Equal(variables, []string{"DB=old\n"}) {
		t.Errorf("got %v, %q, %v", files, variables, err)
	}
	if got := withVariables([]string{"A=1", "DB=none", "DBX=2"}, variables); !slices.Equal(got,
		[]string{"A=1", "DBX=2", "DB=old\n"}) {
		t.Errorf("got %q", got)
	}
	for _, refused := range []struct{ variable, text, want string }{
		{"DB", "a\x00b", "zero byte"},
		{"DB", strings.Repeat("x", roost.MaxSecretVariable+1), "takes 102400 at most"},
		{"PBS_JOBID", "x", "set by Roost"},
		{"A=B", "x", "letters, digits and _"},
	} {
		if _, _, err := attempt(refused.variable, refused.text).takeSecrets(); err == nil ||
			!strings.Contains(err.Error(), refused.want) {
			t.Errorf("%s: got %v, want %q", refused.variable, err, refused.want)
		}
	}
}
