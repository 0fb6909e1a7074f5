package doctor

import (
	"fmt"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// examineGPUs looks for sick GPUs of the pool, and for some of this machine's of which
// the pool knows nothing.
func examineGPUs(c *frame.Invocation) []checkResult {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine", Projection: []string{roost.AttrName,
		document.AttrDevices}})
	if err != nil {
		return nil // said of the nodes
	}
	var unhealthyGPUs []checkResult
	devices, nodes := 0, 0
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			continue
		}
		name, _ := ad.Str(roost.AttrName)
		all := document.GPUDevicesOf(ad)
		devices += len(all)
		if len(all) > 0 {
			nodes++
		}
		for _, d := range all {
			if !d.Healthy {
				unhealthyGPUs = append(unhealthyGPUs, checkResult{"gpus", levelWarning,
					fmt.Sprintf("GPU %d of %s (%s, %s) gets no tasks: %s", d.Index, name, d.Model, d.UUID, d.Reason),
					"look at the kernel's log there; after the repair start the startd anew"})
			}
		}
	}
	if devices == 0 {
		return unseenGPUs("/dev/nvidiactl")
	}
	if unhealthyGPUs == nil {
		return []checkResult{{"gpus", levelOK,
			fmt.Sprintf("%s of %s, all well", document.Plural(devices, "GPU"), document.Plural(nodes, "node")), ""}}
	}
	return unhealthyGPUs
}

// unseenGPUs warns of a driver on this machine whose cards no startd has found.
func unseenGPUs(file string) []checkResult {
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	return []checkResult{{"gpus", levelWarning,
		"the NVIDIA driver is loaded here, and no startd of the pool has found a GPU",
		"startd.log in the pool's log directory says why: install libnvidia-ml.so.1, or build roost where there is a " +
			"C compiler"}}
}
