package ledger

import "testing"

// TestResource holds which resources can be made, and which are counted for the pool.
func TestResource(t *testing.T) {
	for _, c := range []struct {
		r           Resource
		ok, counted bool
	}{
		{Resource{Name: "matlab", Type: "long", Flag: "q"}, true, true},
		{Resource{Name: "matlab", Type: "long"}, true, true},
		{Resource{Name: "fpga", Type: "boolean", Flag: "h"}, true, false},
		{Resource{Name: "slots", Type: "long", Flag: "h"}, true, false},
		{Resource{Name: "os", Type: "string_array", Flag: "hm"}, true, false},
		{Resource{Name: "os"}, true, false},
		{Resource{Name: "scratch", Type: "size", Flag: "nh"}, false, false},
		{Resource{Name: "fpga", Type: "boolean", Flag: "q"}, false, false},
		{Resource{Name: "x", Type: "number"}, false, false},
		{Resource{Name: "x", Type: "long", Flag: "qq"}, false, true},
		{Resource{Name: "x", Type: "long", Flag: "z"}, false, true},
		{Resource{Name: "a.b", Type: "long"}, false, true},
		{Resource{}, false, false},
	} {
		if err := c.r.check(nil); (err == nil) != c.ok || c.r.Counted() != c.counted {
			t.Errorf("%+v: got %v, counted %v, want %v, %v", c.r, err, c.r.Counted(), c.ok, c.counted)
		}
	}
}
