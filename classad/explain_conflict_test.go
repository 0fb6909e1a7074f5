package classad

import "testing"

// TestContradicts checks which pairs of conditions contradict each other for every
// possible row.
func TestContradicts(t *testing.T) {
	for src, want := range map[string]bool{
		`TARGET.n > 5 && TARGET.n < 5`:            true,
		`TARGET.n >= 5 && TARGET.n < 5`:           true,
		`TARGET.n >= 5 && TARGET.n <= 5`:          false,
		`TARGET.n > 5 && TARGET.n < 6`:            false, // 5.5
		`TARGET.n > 6 && TARGET.n < 5`:            true,
		`TARGET.n == 5 && TARGET.n > 5`:           true,
		`TARGET.n == 5 && TARGET.n >= 5`:          false,
		`TARGET.n == 5 && 7 == TARGET.n`:          true,
		`TARGET.f > 1.5 && TARGET.f < 1.5`:        true,
		`TARGET.f > 1.5 && TARGET.f < 1.6`:        false,
		`TARGET.s == "a" && TARGET.s == "A"`:      false,
		`TARGET.s == "a" && TARGET.s == "b"`:      true,
		`TARGET.n > 9 && TARGET.f < 1.0`:          false,
		`TARGET.n < -9223372036854775808 && true`: false,
	} {
		table := NewTable(TableOptions{MatchAllByDefault: true})
		table.Add(parseOrFail(t, `[ n = 100; f = 100.5; s = "none" ]`))
		always := false
		for _, c := range table.Compile(parseOrFail(t, "[ Requirements = "+src+" && false ]")).Explain(nil).Conflicts {
			always = always || c.Contradiction
		}
		if always != want {
			t.Errorf("%s contradicts itself: %v, want %v", src, always, want)
		}
	}
}
