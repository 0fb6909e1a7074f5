package roost

// Version is the release of this source tree, which commands print and ads contain.
const Version = "0.1.0"
