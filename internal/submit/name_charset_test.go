package submit

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

// TestCharsets compares the character sets with the equivalent regular expressions.
func TestCharsets(t *testing.T) {
	for _, c := range []struct {
		name string
		word nameCharset
		expr string
	}{
		{"job", jobName, `^[A-Za-z0-9][A-Za-z0-9_.+-]{0,229}$`},
		{"group", groupName, `^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`},
		{"Unix group", unixGroup, `^[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,63}$`},
		{"variable", envName, `^[A-Za-z_][A-Za-z0-9_]*$`},
		{"attribute", attributeName, `^[A-Za-z_][A-Za-z0-9_]{0,127}$`},
	} {
		re, r := regexp.MustCompile(c.expr), rand.New(rand.NewPCG(1, 2))
		const some = "aZmAz09_.+-@\\$[`{/:\x00\x80é \n"
		fits := 0
		for n := range 20_000 {
			s := make([]byte, r.IntN(4))
			for i := range s {
				s[i] = some[r.IntN(len(some))]
			}
			if n%10 == 0 { // near the longest valid length
				s = append(s, make([]byte, []int{64, 128, 230}[r.IntN(3)]-r.IntN(6))...)
				for i := range s {
					s[i] = "aZ9_"[r.IntN(4)]
				}
			}
			got, want := c.word.matches(string(s)), re.Match(s)
			if got != want {
				t.Fatalf("%s %q: %v, want %v", c.name, s, got, want)
			}
			if got {
				fits++
			}
		}
		if fits < 500 {
			t.Errorf("%s: only %d fitted", c.name, fits)
		}
	}
}
