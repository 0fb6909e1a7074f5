package document

import "testing"

// TestTargetOf checks the address of a target, of both families.
func TestTargetOf(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1": "10.0.0.1:20000", "fd00::1": "[fd00::1]:20000"} {
		e := Endpoint{Address: address, Ports: map[string]uint32{"http": 20000}}
		if got, ok := TargetOf(e, "http"); !ok || got.Targets[0] != want {
			t.Errorf("%s: got %v, %v, want %s", address, got.Targets, ok, want)
		}
		if _, ok := TargetOf(e, "admin"); ok {
			t.Errorf("%s: it has a port that it has not", address)
		}
	}
}
