// Package ecs starts a task of Amazon ECS on Fargate for each attempt that a runner executes.
//
// It owns what a task is made of, the task definition of each runner and its revisions, what
// is polled of tasks, and which reason follows from that.
//
// The launcher of the reconciler (reconciler/launch) calls Start and Stop and reads Launched;
// cmd/holdfast/serve opens Tasks for each runner.
//
// It never decides what becomes of an attempt, never starts one again, and takes nothing for
// the death of its processes but the exit code of a container, which the agent of ECS has
// reported.
package ecs
