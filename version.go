package roost

// Version is the release of this source tree, as commands and ads tell it.
const Version = "0.1.0"
