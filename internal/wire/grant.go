package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// GrantText is what a grant's capability covers: everything that a schedd could want to change.
func GrantText(g *Grant) []byte {
	r := g.GetResources()
	text := fmt.Appendf(nil, "grant\n%d\nepoch %d\nowner %q\ngroup %q\nband %q\nnode %q\ncpu %d\nmemory %d\ndisk %d\ngpus %d\ngpu_memory %d\nvictims %d\nwhy %q\n",
		g.GetId(), g.GetEpoch(), g.GetOwner(), g.GetGroup(), g.GetBand(), g.GetNode(), r.GetMilliCpu(), r.GetMemory(), r.GetDisk(), r.GetGpus(), r.GetGpuMemory(),
		g.GetVictims(), g.GetWhy())
	if by := g.GetClaimBy(); by != 0 { // a startd that knows nothing of it gets none, and is not to wonder
		text = fmt.Appendf(text, "claim_by %d\n", by)
	}
	return text
}

// Capability computes the proof that a holder of key, which only negotiators and that one startd know, made the grant.
func Capability(key []byte, g *Grant) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(GrantText(g))
	return mac.Sum(nil)
}

// CheckCapability reports whether the grant's capability was made with key, in constant time.
func CheckCapability(key []byte, g *Grant) bool {
	return hmac.Equal(Capability(key, g), g.GetCapability())
}
