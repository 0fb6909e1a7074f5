package admin

import (
	"math"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// maxCores bounds what is taken for a number of cores, and not for a slip.
const maxCores = 1 << 20

// ParseCores reads a number of cores: "4", "0.5" or "500m".
func ParseCores(text string) (roost.MilliCPU, error) {
	scale := 1000.0
	if digits, ok := strings.CutSuffix(text, "m"); ok {
		text, scale = digits, 1
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n <= 0 || n*scale > maxCores*1000 {
		return 0, frame.UsageErrorf("--cpus: %q is not a number of cores", text)
	}
	return roost.MilliCPU(math.Ceil(n * scale)), nil
}
