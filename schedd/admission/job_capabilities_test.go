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

func TestCheckCapabilitiesPorts(t *testing.T) {
	p := &wire.Policy{StaticPortUsers: []string{"ann"}, PrivilegedPortUsers: []string{"bob@n1"}}
	for _, c := range []struct{ user, node, ports, want string }{
		{"ann", "n1", `{[Name = "a"; Static = 8080]}`, ""},
		{"eve", "n1", `{[Name = "a"; Static = 8080]}`, ""},
		{"ann", "n1", `{[Name = "a"; Host = "*"]}`, ""},
		{"eve", "n1", `{[Name = "a"; Host = "*"]}`, `lacks the capability "static-ports"`},
		{"ann", "n1", `{[Name = "a"; Static = 80]}`, `roost admin give ann@n1 privileged-ports`},
		{"bob", "n1", `{[Name = "a"; Static = 80]}`, ""},
		{"bob", "n2", `{[Name = "a"; Static = 80]}`, `lacks the capability "privileged-ports"`},
		{"bob", "n1", `{[Name = "a"; Static = 80; Host = "*"]}`, `"static-ports"`},
		{"ann", "n1", `{[Name = "a"; Static = 70000]}`, "a whole number"},
	} {
		ad, err := classad.Parse(`[Cmd = "/bin/true"; Ports = ` + c.ports + `]`)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckCapabilities(p, c.user, c.node, []queue.SubmitSpec{{Ad: ad, Count: 1}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s on %s with %s: %v, want %q", c.user, c.node, c.ports, err, c.want)
		}
		if strings.Contains(c.want, "capability") && !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("%v is no lack of permission", err)
		}
	}
}

// TestCheckRestricted checks that restricted services and devices are for holders only.
// Other jobs are refused to nobody.
func TestCheckRestricted(t *testing.T) {
	p := &wire.Policy{Restricted: []*wire.CapabilityHolders{{Capability: "services", Users: []string{"ann@n1"}},
		{Capability: "device:gpu", Users: []string{"bob"}}, {Capability: "device:fpga"}}}
	for _, c := range []struct{ user, node, ad, want string }{
		{"ann", "n1", `Service = []`, ""},
		{"ann", "n2", `Service = []`, `ann lacks the capability "services"`},
		{"bob", "n1", `Alloc = true`, "roost admin give bob@n1 services"},
		{"bob", "n1", `Alloc = false`, ""},
		{"bob", "n1", `RequestGpus = 1`, ""},
		{"ann", "n1", `RequestGpus = 1`, `"device:gpu"`},
		{"ann", "n1", `RequestGpuMemory = 100`, `a job with GPUs needs in this cell`},
		{"ann", "n1", `RequestGpus = 0`, ""},
		{"ann", "n1", `ConcurrencyLimits = "FPGA:2"`, `"device:fpga", which a job that asks for fpga needs`},
		{"ann", "n1", `ConcurrencyLimits = "matlab"`, ""},
	} {
		ad, err := classad.Parse(`[Cmd = "/bin/true"; ` + c.ad + `]`)
		if err != nil {
			t.Fatal(err)
		}
		specs := []queue.SubmitSpec{{Ad: ad, Count: 1}}
		err = CheckCapabilities(p, c.user, c.node, specs)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, roost.PermissionDenied) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s on %s with %s: %v, want %q", c.user, c.node, c.ad, err, c.want)
		}
		if err := CheckCapabilities(&wire.Policy{}, c.user, c.node, specs); err != nil {
			t.Errorf("without restrictions, %s: %v", c.ad, err)
		}
	}
}

// TestCheckRights checks that a revision is checked as a whole. An alteration is checked
// only if it concerns what capabilities are for.
func TestCheckRights(t *testing.T) {
	p := &wire.Policy{Restricted: []*wire.CapabilityHolders{{Capability: "services"}}}
	spec := &queue.SubmitSpec{Ad: classad.New(), Count: 1}
	spec.Ad.SetAd(roost.AttrService, classad.New())
	other, same := classad.New(), classad.New()
	other.SetInt(roost.AttrPriority, 3)
	same.SetAd(roost.AttrService, classad.New())
	if err := CheckRights(p, "ann", "n1", nil, spec); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a revision: %v", err)
	}
	if err := CheckRights(p, "ann", "n1", other, spec); err != nil {
		t.Errorf("another priority: %v", err)
	}
	if err := CheckRights(p, "ann", "n1", same, spec); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("another service block: %v", err)
	}
}
