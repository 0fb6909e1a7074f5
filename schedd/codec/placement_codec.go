package codec

import (
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire"
)

// sharedUnit is what the only unit of a machine is called: that a claim is of it says
// nothing.
const sharedUnit = "shared"

// EncodePlacement encodes what a claim was given of its machine, for logs. It returns ""
// where there is nothing to report.
func EncodePlacement(p *wire.Placed) string {
	if p == nil || len(p.GetCores()) == 0 && len(p.GetGpus()) == 0 && len(p.GetPorts()) == 0 &&
		len(p.GetUnits()) == 1 &&
		p.GetUnits()[0] == sharedUnit {
		return ""
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return ""
	}
	return string(text)
}

// DecodePlacement is the way back; nil for nothing.
func DecodePlacement(text string) *wire.Placed {
	p := &wire.Placed{}
	if text == "" || proto.Unmarshal([]byte(text), p) != nil {
		return nil
	}
	return p
}
