package submit

import (
	"github.com/hashicorp/hcl/v2"
)

// ParseFile reads a job file. When the diagnostics hold an error there are no jobs: a file is submitted whole or not at all.
// Jobs come in an order in which each depends only on earlier ones; DependsOn names those as "@0", "@1", ….
func ParseFile(src []byte, opts Options) ([]Job, hcl.Diagnostics) {
	return nil, nil
}
