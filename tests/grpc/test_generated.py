"""The generated code is what `make proto` makes of proto/ today, whatever the compiler's version."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

from duetime.v1 import deliveries_pb2, duetime_pb2, intents_pb2
from duetime.v1.stub import SERVICE, DuetimeStub
from tests.grpc.subscriber import channel_to
from tools.generate_proto import PROTO, SOURCES

MODULES = {module.DESCRIPTOR.name: module for module in (deliveries_pb2, duetime_pb2, intents_pb2)}


def test_the_messages_are_current(tmp_path):
    out = tmp_path / "all.desc"
    names = [str(path.relative_to(PROTO)) for path in SOURCES]
    assert protoc.main(["protoc", f"-I{PROTO}", f"--descriptor_set_out={out}", *names]) == 0
    compiled = FileDescriptorSet.FromString(out.read_bytes())
    assert sorted(file.name for file in compiled.file) == sorted(MODULES)
    for file in compiled.file:
        checked_in = FileDescriptorProto()
        MODULES[file.name].DESCRIPTOR.CopyToProto(checked_in)
        for each in (file, checked_in):
            each.ClearField("source_code_info")
        _without_json_names(file)
        _without_json_names(checked_in)
        assert checked_in == file, f"{file.name} has changed: run make proto"


def _without_json_names(message) -> None:
    """The compiler writes them out, the runtime makes them up."""
    for each in [*getattr(message, "message_type", ()), *getattr(message, "nested_type", ())]:
        for field in each.field:
            field.ClearField("json_name")
        _without_json_names(each)


def test_the_stub_has_every_call():
    import asyncio

    async def main():
        async with channel_to("grpc://127.0.0.1:1") as channel:
            stub = DuetimeStub(channel)
            service = duetime_pb2.DESCRIPTOR.services_by_name["Duetime"]
            assert service.full_name == SERVICE
            assert [method.name for method in service.methods] == list(vars(stub))

    asyncio.run(main())
