"""Operators on an NPU that are more than one aclnn call, or none: functions of (results, arguments as tensors).

`results[i]` is the payload of a result, made when it is asked for. A function fills it, or returns tensors, which are taken as they are or copied in.
They call public operators where there is no aclnn function. A module a family; entries name them as `npu: module.function`.
"""
