package config

import (
	"testing"
)

func TestAdvertisedAddress(t *testing.T) {
	tests := []struct {
		listen []string
		want   string
	}{
		{nil, ""},
		{[]string{"unix:/a"}, "unix:/a"},
		{[]string{"unix:/a", "10.0.0.1:1"}, "10.0.0.1:1"},
		{[]string{"[fe80::1]:1", "10.0.0.1:1"}, "[fe80::1]:1"},
	}
	for _, tt := range tests {
		if got := AdvertisedAddress(tt.listen); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.listen, got, tt.want)
		}
	}
}

func TestGPUsOfSeveral(t *testing.T) {
	n, err := loadText(t, "collector {}\nnegotiator {}\nstartd \"n1\" {}\nstartd \"n2\" {}\nstartd \"n3\" {\n gpus "+
		"{ library = \"/other.so\" }\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false} {
		if got := n.Startds[i].GPUs.None; got != want {
			t.Errorf("startd %d: none %v, want %v", i, got, want)
		}
	}
}
