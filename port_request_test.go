package roost

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCheckPorts(t *testing.T) {
	many := make([]PortRequest, MaxPorts+1)
	for i := range many {
		many[i].Name = fmt.Sprintf("p%d", i)
	}
	for _, c := range []struct {
		list []PortRequest
		want string
	}{
		{nil, ""},
		{[]PortRequest{{Name: "http", Static: 8080, Listen: true, Host: "*"}, {Name: "grpc-2"}}, ""},
		{many[:MaxPorts], ""},
		{many, "at most 64"},
		{[]PortRequest{{Name: "a"}, {Name: "a"}}, "used twice"},
		{[]PortRequest{{Name: "a", Static: 80}, {Name: "b", Static: 80}}, "port a has the number 80"},
		{[]PortRequest{{Name: ""}}, "from 1 to 15"},
		{[]PortRequest{{Name: "abcdefghijklmnop"}}, "from 1 to 15"},
		{[]PortRequest{{Name: "Http"}}, "small letters"},
		{[]PortRequest{{Name: "1a"}}, "begins with a letter"},
		{[]PortRequest{{Name: "a_b"}}, "small letters"},
		{[]PortRequest{{Name: "a-"}}, "hyphen"},
		{[]PortRequest{{Name: "a--b"}}, "hyphen"},
		{[]PortRequest{{Name: "a", Host: "10.0.0.1"}}, "neither"},
	} {
		err := CheckPorts(c.list)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !errors.Is(err, Invalid) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.list, err, c.want)
		}
	}
	if got := (PortRequest{Name: "grpc-2"}).EnvName(); got != "GRPC_2" {
		t.Errorf("the variable of grpc-2 ends in %s", got)
	}
}
