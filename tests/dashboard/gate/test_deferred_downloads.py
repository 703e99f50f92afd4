"""A file that is made when its button is pressed is offered to the session that asked for it."""

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from dashboard.gate.downloads import _offered


def test_the_address_of_a_file_made_on_demand_is_offered() -> None:
    message = ForwardMsg()
    message.backend_operation_response.deferred_file.url = "/media/0a1b.json"
    assert list(_offered(message.SerializeToString())) == ["0a1b.json"]
