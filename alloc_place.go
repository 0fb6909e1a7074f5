package roost

// The values of AttrAllocPlace.
const (
	PlaceByIndex  = "index" // each task inside the alloc of its own index
	PlaceAnywhere = "any"   // each task inside any alloc of the set that has room
)
