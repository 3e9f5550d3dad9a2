// Package folders goes through folders that code which is not trusted has filled:
// workspaces of engines, and what is left of them.
//
// It owns that such a folder costs no more than its number of entries: no path
// is walked twice, few descriptors are open at a time whatever the depth, links
// are not followed, and each step looks at a context. Sandboxes, agents and the
// store of prepared folders call it. It never decides what is kept, and never
// continues beyond bounds that it was given.
//
// It knows, too, where on the machine a file is that an engine's code names, and
// what stands for its content. It opens only files and folders by such names, never
// a device, a pipe or what the kernel shows of itself.
package folders
