package roost

import (
	"errors"
	"testing"
)

func TestPilotOwner(t *testing.T) {
	for text, want := range map[string]PilotOwner{"ada": {"ada", ""}, "ada@login1": {"ada", "login1"},
		"a.b-c_d+1@n.x": {"a.b-c_d+1", "n.x"}} {
		got, err := ParsePilotOwner(text)
		if got != want || err != nil || got.String() != text {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "@", "ada@", "@n", "a@b@c", "a b", `a"`, "a\n", "ä"} {
		if got, err := ParsePilotOwner(text); !errors.Is(err, Invalid) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	both, one := PilotOwner{User: "ada"}, PilotOwner{"ada", "login1"}
	if !both.Admits("ada", "x") || both.Admits("eve", "x") || !one.Admits("ada", "login1") || one.Admits("ada", "x") ||
		one.Admits("eve", "login1") {
		t.Error("it admits others, or not its owner")
	}
}
