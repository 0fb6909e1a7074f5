package startd

import (
	"errors"
	"testing"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// TestClaimsOfGuests checks as whom a guest may have a claim, whatever its token says.
func TestClaimsOfGuests(t *testing.T) {
	chem := guestSession{pool: "chem", serial: "17"}
	for name, tt := range map[string]struct {
		session            guestSession
		owner, group, band string
		allowed            bool
	}{
		"its own user":              {chem, "ann@chem", "peer:chem", "free", true},
		"a user of the host":        {chem, "ann", "peer:chem", "free", false},
		"root":                      {chem, "root", "", "free", false},
		"a user of another guest":   {chem, "ann@bio", "peer:bio", "free", false},
		"in another guest's group":  {chem, "ann@chem", "peer:bio", "free", false},
		"in a group of the host":    {chem, "ann@chem", "physics", "free", false},
		"in no group":               {chem, "ann@chem", "", "free", false},
		"of a pool with its ending": {chem, "ann@biochem", "peer:chem", "free", false},
		"two pools in the name":     {chem, "ann@bio@chem", "peer:chem", "free", false},
		"in a higher band":          {chem, "ann@chem", "peer:chem", "batch", false},
		"in no band":                {chem, "ann@chem", "peer:chem", "", false},
		"a schedd of this pool":     {guestSession{}, "ann", "physics", "production", true},
	} {
		err := tt.session.refusal(&wire.ClaimRequest{Owner: tt.owner, Group: tt.group, Band: tt.band})
		if tt.allowed != (err == nil) || err != nil && !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAdOfGuest checks what the policy of a machine sees of a guest. It is what is so,
// and not what the ad of the guest says.
func TestAdOfGuest(t *testing.T) {
	const text = `[Owner = "root"; Group = "physics"; Band = "production"; GuestOf = "bio";
FileSystemDomain = "physics.example"; SubmitHost = "login1"; RequestCpus = 2]`
	r := &wire.ClaimRequest{Owner: "ann@chem", Group: "peer:chem", Band: "free"}
	ad, err := classad.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	guestSession{}.describe(ad, r)
	if owner, _ := ad.Str(roost.AttrOwner); owner != "root" {
		t.Errorf("the ad of a schedd of this pool is changed: %s", ad)
	}
	guestSession{pool: "chem"}.describe(ad, r)
	for name, want := range map[string]string{roost.AttrOwner: "ann@chem", roost.AttrGroup: "peer:chem",
		roost.AttrBand: "free", peer.AttrGuestOf: "chem", roost.AttrFileSystemDomain: "", roost.AttrSubmitHost: ""} {
		if got, _ := ad.Str(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if cpus, _ := ad.Int(roost.AttrRequestCpus); cpus != 2 {
		t.Errorf("the rest is lost: %s", ad)
	}
	guestSession{pool: "chem"}.describe(nil, r) // an ad that could not be read
}

// TestProgramsOfGuests checks that guests get no images and packages of the pool.
func TestProgramsOfGuests(t *testing.T) {
	image := &wire.Program{Container: &wire.Container{}}
	packages := &wire.Program{Packages: []*wire.PackageMount{{}}}
	for _, p := range []*wire.Program{image, packages} {
		if (guestSession{pool: "chem"}).refuses(p) == "" || (guestSession{}).refuses(p) != "" {
			t.Errorf("%v", p)
		}
	}
	if why := (guestSession{pool: "chem"}).refuses(&wire.Program{}); why != "" {
		t.Errorf("a plain program is refused: %s", why)
	}
}

// TestGuestOfCertificate checks that a certificate alone makes a guest.
func TestGuestOfCertificate(t *testing.T) {
	for name, tt := range map[string]struct {
		of   peer.Peer
		want guestSession
	}{
		"a guest": {peer.Peer{Certified: []peer.Role{peer.Guest}, GuestOf: "chem", Serial: "17"},
			guestSession{"chem", "17"}},
		"a schedd with such a name": {peer.Peer{Certified: []peer.Role{peer.Schedd}, GuestOf: "chem"},
			guestSession{}},
		"the same host": {peer.Peer{Local: true, Certified: []peer.Role{peer.Guest}, GuestOf: "chem"},
			guestSession{}},
	} {
		if got := guestOf(grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: tt.of})); got != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
