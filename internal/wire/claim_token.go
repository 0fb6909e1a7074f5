package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// GrantText returns the text that a grant's claim token covers. It has every field that a
// schedd could want to change, and the schedd that may claim. A startd of the release
// before does not know the schedd, so its grants name none.
func GrantText(g *Grant, schedd string) []byte {
	r := g.GetResources()
	text := fmt.Appendf(nil, "grant\n%d\nepoch %d\nowner %q\ngroup %q\nband %q\nnode %q\ncpu %d\nmemory %d\ndisk "+
		"%d\ngpus %d\ngpu_memory %d\nvictims %d\nwhy %q\n",
		g.GetId(), g.GetEpoch(), g.GetOwner(), g.GetGroup(), g.GetBand(), g.GetNode(), r.GetMilliCpu(), r.GetMemory(),
		r.GetDisk(), r.GetGpus(), r.GetGpuMemory(),
		g.GetVictims(), g.GetWhy())
	if by := g.GetClaimBy(); by != 0 { // a startd that does not know the field gets none
		text = fmt.Appendf(text, "claim_by %d\n", by)
	}
	if r.GetDiskIo() != 0 || r.GetNetwork() != 0 { // likewise
		text = fmt.Appendf(text, "disk_io %d\nnetwork %d\n", r.GetDiskIo(), r.GetNetwork())
	}
	if rights := g.GetPortRights(); len(rights) > 0 { // likewise
		text = fmt.Appendf(text, "port_rights %q\n", rights)
	}
	if schedd != "" {
		text = fmt.Appendf(text, "schedd %q\n", schedd)
	}
	return text
}

// ClaimToken returns a keyed digest that proves who made the grant. Only the negotiators
// and one startd know the key. The token is for one schedd, or for any if schedd is
// empty.
func ClaimToken(key []byte, g *Grant, schedd string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(GrantText(g, schedd))
	return mac.Sum(nil)
}

// CheckClaimToken reports whether the grant's claim token was made with key for a schedd.
// A negotiator of the release before names no schedd. Comparisons take constant time.
func CheckClaimToken(key []byte, g *Grant, schedd string) bool {
	return hmac.Equal(ClaimToken(key, g, schedd), g.GetCapability()) ||
		hmac.Equal(ClaimToken(key, g, ""), g.GetCapability())
}
