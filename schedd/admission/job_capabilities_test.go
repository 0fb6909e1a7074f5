package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

func TestCheckPorts(t *testing.T) {
	p := &wire.Policy{StaticPortUsers: []string{"ann"}, PrivilegedPortUsers: []string{"bob@n1"}}
	for _, c := range []struct{ user, node, ports, want string }{
		{"ann", "n1", `{[Name = "a"; Static = 8080]}`, ""},
		{"eve", "n1", `{[Name = "a"; Static = 8080]}`, ""},
		{"ann", "n1", `{[Name = "a"; Host = "*"]}`, ""},
		{"eve", "n1", `{[Name = "a"; Host = "*"]}`, `lacks the capability "static-ports"`},
		{"ann", "n1", `{[Name = "a"; Static = 80]}`, `roost admin give ann privileged-ports`},
		{"bob", "n1", `{[Name = "a"; Static = 80]}`, ""},
		{"bob", "n2", `{[Name = "a"; Static = 80]}`, `lacks the capability "privileged-ports"`},
		{"bob", "n1", `{[Name = "a"; Static = 80; Host = "*"]}`, `"static-ports"`},
		{"ann", "n1", `{[Name = "a"; Static = 70000]}`, "a whole number"},
	} {
		ad, err := classad.Parse(`[Cmd = "/bin/true"; Ports = ` + c.ports + `]`)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckPorts(p, c.user, c.node, []queue.SubmitSpec{{Ad: ad, Count: 1}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s on %s with %s: %v, want %q", c.user, c.node, c.ports, err, c.want)
		}
		if strings.Contains(c.want, "capability") && !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("%v is no lack of permission", err)
		}
	}
}
