package match

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// The mix is what a pool is typically asked for of its GPUs: the kinds of the waiting
// requests and of the claims, by number of tasks. It has the most frequent kinds that
// together make up 95 of 100 tasks (Weng et al., ATC 2023, §4.1).

// wholeGPUWeight is the weight of a request for one whole GPU that every mix has. Such a
// request will come even if none waits now; so shares are placed on GPUs that are shared
// already.
const wholeGPUWeight = gpu.MixWeight / 32

// mixRequest identifies requests that are the same to a mix.
type mixRequest struct {
	gpu.DeviceRequest
	requirements string // empty for claims, whose requirements are unknown
}

func (k mixRequest) compare(other mixRequest) int {
	return cmp.Or(
		cmp.Compare(k.GPUs, other.GPUs), cmp.Compare(k.GPUMemory, other.GPUMemory), cmp.Compare(k.CPU, other.CPU),
		cmp.Compare(k.Memory, other.Memory),
		cmp.Compare(k.Class, other.Class), strings.Compare(k.requirements, other.requirements),
	)
}

// mixRequest returns the kind of a class, which is computed once.
func (c *RequestClass) mixRequest() mixRequest {
	if c.mixKey == nil {
		c.mixKey = &mixRequest{DeviceRequest: c.deviceRequest()}
		c.mixKey.Disk, c.mixKey.IO, c.mixKey.MayReclaim = 0, roost.IORates{}, false
		if e, ok := c.Ad.Lookup(roost.AttrRequirements); ok {
			c.mixKey.requirements = e.String()
		}
	}
	return *c.mixKey
}

// mixRequest returns the kind of what a claim holds.
func (c *MachineClaim) mixRequest() mixRequest {
	k := mixRequest{DeviceRequest: gpu.DeviceRequest{Resources: c.Resources, Class: c.AppClass()}}
	k.Disk, k.IO = 0, roost.IORates{}
	if s := c.Placement.Shares; len(s) > 0 && !s[0].Whole {
		k.GPUs, k.GPUMemory = len(s), s[0].Memory
	}
	return k
}

// weightedRequest is a kind with its number of tasks.
type weightedRequest struct {
	mixRequest
	class *RequestClass // a class of the kind; nil: it matches every machine
	tasks int
}

// countMixRequests lists the kinds of requests and counted claims that want GPUs, the
// most frequent first. One request counts at most as many tasks as there are GPUs,
// because more of them cannot run at once. With [Fragmentation] the mix has kinds without
// GPUs too, as published: all idle GPUs are useless to them.
func countMixRequests(requests []*Request, claims map[mixRequest]int, gpus int, by ScorePolicy) []weightedRequest {
	number := map[mixRequest]int{}
	var list []weightedRequest
	count := func(k mixRequest, class *RequestClass, tasks int) {
		i, known := number[k]
		if !known {
			i, number[k] = len(list), len(list)
			list = append(list, weightedRequest{mixRequest: k, class: class})
		}
		list[i].tasks += tasks
	}
	for _, r := range requests {
		if r.Wanted > 0 && (r.Class.Resources.GPUs > 0 || by == Fragmentation) {
			count(r.Class.mixRequest(), r.Class, min(r.Wanted, gpus))
		}
	}
	for k, n := range claims {
		if k.GPUs > 0 || by == Fragmentation {
			count(k, nil, n)
		}
	}
	slices.SortFunc(list, func(a, b weightedRequest) int {
		return cmp.Or(cmp.Compare(b.tasks, a.tasks), a.compare(b.mixRequest))
	})
	return list
}

// chooseMix selects the kinds that make up a mix and converts their tasks to weights.
func chooseMix(kinds []weightedRequest, by ScorePolicy) []weightedRequest {
	all, most := 0, 0
	for _, k := range kinds {
		all += k.tasks
	}
	for n, k := range kinds {
		if 100*most >= 95*all || n == gpu.MaxNeeds-1 {
			kinds = kinds[:n]
			break
		}
		most += k.tasks
	}
	var needs []weightedRequest
	rest := gpu.MixWeight
	if by != Fragmentation {
		needs = append(needs, weightedRequest{mixRequest: mixRequest{
			DeviceRequest: gpu.DeviceRequest{Resources: roost.Resources{GPUs: 1}},
		}, tasks: wholeGPUWeight})
		rest -= wholeGPUWeight
	}
	for _, k := range kinds {
		if k.tasks = k.tasks * rest / most; k.tasks > 0 {
			needs = append(needs, k)
		}
	}
	return needs
}

// mixOf makes a mix of needs.
func mixOf(needs []weightedRequest) *gpu.RequestMix {
	list := make([]gpu.MixRequest, len(needs))
	for i, n := range needs {
		list[i] = gpu.MixRequest{DeviceRequest: n.DeviceRequest, Weight: n.tasks}
	}
	return gpu.NewMix(list)
}
