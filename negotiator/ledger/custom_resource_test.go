package ledger

import "testing"

// TestResource checks which resources can be made, and which are counted for the pool.
func TestResource(t *testing.T) {
	for _, c := range []struct {
		r           CustomResource
		ok, counted bool
	}{
		{CustomResource{Name: "matlab", Type: "long", Flag: "q"}, true, true},
		{CustomResource{Name: "matlab", Type: "long"}, true, true},
		{CustomResource{Name: "fpga", Type: "boolean", Flag: "h"}, true, false},
		{CustomResource{Name: "slots", Type: "long", Flag: "h"}, true, false},
		{CustomResource{Name: "os", Type: "string_array", Flag: "hm"}, true, false},
		{CustomResource{Name: "os"}, true, false},
		{CustomResource{Name: "scratch", Type: "size", Flag: "nh"}, false, false},
		{CustomResource{Name: "fpga", Type: "boolean", Flag: "q"}, false, false},
		{CustomResource{Name: "x", Type: "number"}, false, false},
		{CustomResource{Name: "x", Type: "long", Flag: "qq"}, false, true},
		{CustomResource{Name: "x", Type: "long", Flag: "z"}, false, true},
		{CustomResource{Name: "a.b", Type: "long"}, false, true},
		{CustomResource{}, false, false},
	} {
		if err := c.r.check(nil); (err == nil) != c.ok || c.r.IsCounted() != c.counted {
			t.Errorf("%+v: got %v, counted %v, want %v, %v", c.r, err, c.r.IsCounted(), c.ok, c.counted)
		}
	}
}
