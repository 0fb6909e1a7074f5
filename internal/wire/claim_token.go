package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// GrantText is what a grant's capability covers: everything that a schedd could want to
// change, and the schedd that may claim. A startd of the release before knows nothing of
// the latter, so its grants name none.
func GrantText(g *Grant, schedd string) []byte {
	r := g.GetResources()
	text := fmt.Appendf(nil, "grant\n%d\nepoch %d\nowner %q\ngroup %q\nband %q\nnode %q\ncpu %d\nmemory %d\ndisk "+
		"%d\ngpus %d\ngpu_memory %d\nvictims %d\nwhy %q\n",
		g.GetId(), g.GetEpoch(), g.GetOwner(), g.GetGroup(), g.GetBand(), g.GetNode(), r.GetMilliCpu(), r.GetMemory(),
		r.GetDisk(), r.GetGpus(), r.GetGpuMemory(),
		g.GetVictims(), g.GetWhy())
	if by := g.GetClaimBy(); by != 0 { // a startd that knows nothing of it gets none, and is not to wonder
		text = fmt.Appendf(text, "claim_by %d\n", by)
	}
	if schedd != "" {
		text = fmt.Appendf(text, "schedd %q\n", schedd)
	}
	return text
}

// ClaimToken computes the proof that a holder of key, which only negotiators and that one
// startd know, made the grant for that schedd; for any schedd where none is named.
func ClaimToken(key []byte, g *Grant, schedd string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(GrantText(g, schedd))
	return mac.Sum(nil)
}

// CheckClaimToken reports whether the grant's capability was made with key, for that
// schedd or by a negotiator of the release before, which names none. Comparisons take
// constant time.
func CheckClaimToken(key []byte, g *Grant, schedd string) bool {
	return hmac.Equal(ClaimToken(key, g, schedd), g.GetCapability()) ||
		hmac.Equal(ClaimToken(key, g, ""), g.GetCapability())
}
