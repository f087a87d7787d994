"""The calls of the service, for clients of `grpc.aio`."""

from __future__ import annotations

from typing import TypeVar

import grpc.aio
from google.protobuf.message import Message

from duetime.v1 import deliveries_pb2, intents_pb2

SERVICE = "duetime.v1.Duetime"

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class DuetimeStub:
    """What can be called over a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        pb = intents_pb2

        def unary(
            name: str, request: type[Request], response: type[Response]
        ) -> grpc.aio.UnaryUnaryMultiCallable[Request, Response]:
            return channel.unary_unary(
                f"/{SERVICE}/{name}",
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )

        self.Create = unary("Create", pb.CreateRequest, pb.CreateResponse)
        self.CreateBatch = unary("CreateBatch", pb.CreateBatchRequest, pb.CreateBatchResponse)
        self.Get = unary("Get", pb.GetRequest, pb.Intent)
        self.List = unary("List", pb.ListRequest, pb.ListResponse)
        self.Patch = unary("Patch", pb.PatchRequest, pb.Intent)
        self.Cancel = unary("Cancel", pb.CancelRequest, pb.Intent)
        self.FireNow = unary("FireNow", pb.FireNowRequest, pb.Intent)
        self.Revive = unary("Revive", pb.ReviveRequest, pb.Intent)
        self.Health = unary("Health", pb.HealthRequest, pb.HealthResponse)
        self.WatchIntents: grpc.aio.UnaryStreamMultiCallable[
            pb.WatchIntentsRequest, pb.WatchIntentsResponse
        ] = channel.unary_stream(
            f"/{SERVICE}/WatchIntents",
            request_serializer=pb.WatchIntentsRequest.SerializeToString,
            response_deserializer=pb.WatchIntentsResponse.FromString,
        )
        self.Deliveries: grpc.aio.StreamStreamMultiCallable[
            deliveries_pb2.ClientMessage, deliveries_pb2.ServerMessage
        ] = channel.stream_stream(
            f"/{SERVICE}/Deliveries",
            request_serializer=deliveries_pb2.ClientMessage.SerializeToString,
            response_deserializer=deliveries_pb2.ServerMessage.FromString,
        )
